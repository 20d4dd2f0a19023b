//! Every form of a route, on each of the four levels (docs/routes.md), and lists that are too long.

use serde_json::{Value, json};

use crate::conversation::{self, Case, Record};
use crate::crashing_store::CrashMode;

/// From the outermost to the innermost.
const LEVELS: [&str; 4] = ["session", "phase", "topic", "action"];

fn run(case: &Value, death: CrashMode) -> Record {
    let case: Case = serde_json::from_value(case.clone()).unwrap();
    conversation::run(&case, death).unwrap_or_else(|rejected| panic!("refused\n{}", rejected.0))
}

fn say_action(id: &str, content: &str) -> Value {
    json!({ "action_type": "ai_say", "action_id": id, "config": { "content": content, "delivery": "verbatim" } })
}

/// A case in which the person is blocked in the first of three topics, with `route` on one level and `fail` on every outer one.
fn case_with_route(level: usize, route: &Value, answers: &[&str]) -> Value {
    let table = |at: usize| match at {
        at if at < level => json!({ "user_blocked": "fail" }),
        at if at == level => json!({ "user_blocked": route }),
        _ => json!({ "off_topic": "fail" }),
    };
    let ask = json!({
        "action_type": "ai_ask", "action_id": "ask", "on_exit": table(3),
        "config": { "content": "问", "delivery": "verbatim" },
    });
    let never = json!({
        "action_type": "ai_say", "action_id": "hug", "condition": "false", "config": { "content": "拥抱", "delivery": "verbatim" },
    });
    let first = json!({ "topic_id": "t1", "on_exit": table(2), "actions": [ask, say_action("below", "下"), never] });
    let second = json!({ "topic_id": "t2", "actions": [say_action("other", "别的")] });
    let third = json!({ "topic_id": "t3", "actions": [say_action("last", "二 {{ shy }}")] });
    json!({
        "session": {
            "declare": [{ "var": "shy", "value": "不知" }],
            "on_exit": table(0),
            "skills": [{ "skill_id": "comfort", "actions": [say_action("soothe", "抱抱")] }],
            "phases": [
                { "phase_id": "p1", "on_exit": table(1), "topics": [first, second] },
                { "phase_id": "p2", "topics": [third] },
            ],
        },
        "replies": { "ask": [
            { "$ask": { "content": "再问", "progress_suggestion": "blocked" } },
            { "$ask": { "content": "完", "EXIT": "YES" } },
        ] },
        "answers": answers,
        "expect": null,
    })
}

#[test]
fn every_route_does_the_same_on_the_action_the_topic_the_phase_and_the_session() {
    let once: &[&str] = &["不"];
    let twice: &[&str] = &["不", "好"];
    let table: [(Value, &[&str], &str); 14] = [
        (json!("next"), once, "下 | 别的 | 二 不知"),
        (json!("resume"), twice, "再问 | 好 | 完 | 下 | 别的 | 二 不知"),
        (json!("retry"), twice, "问 | 好 | 完 | 下 | 别的 | 二 不知"),
        (json!("skip_topic"), once, "别的 | 二 不知"),
        (json!("skip_phase"), once, "二 不知"),
        (json!({ "goto": "t2" }), once, "别的 | 二 不知"),
        (json!({ "goto": "p2" }), once, "二 不知"),
        (json!({ "insert": "comfort" }), twice, "抱抱 | 再问 | 好 | 完 | 下 | 别的 | 二 不知"),
        (json!({ "insert": "hug", "then": "next" }), once, "拥抱 | 下 | 别的 | 二 不知"),
        (json!({ "insert": "comfort", "then": "retry" }), twice, "抱抱 | 问 | 好 | 完 | 下 | 别的 | 二 不知"),
        (json!({ "set": { "shy": true }, "insert": "hug", "goto": "p2" }), once, "拥抱 | 二 true"),
        (json!({ "set": { "shy": true }, "then": "skip_phase" }), once, "二 true"),
        (json!("end"), once, ""),
        (json!("fail"), once, ""),
    ];
    for (route, answers, expected) in &table {
        for (level, name) in LEVELS.into_iter().enumerate() {
            let case = case_with_route(level, route, answers);
            let record = run(&case, CrashMode::Never);
            let label = format!("{route} on the {name}");
            let messages: Vec<&str> = record.said.iter().skip(2).map(|line| line.split_once(": ").unwrap().1).collect();
            assert_eq!(messages.join(" | "), *expected, "{label}");
            let failed = *route == json!("fail");
            assert_eq!(record.status, if failed { "failed" } else { "completed" }, "{label}");
            let decision = record.events.iter().find(|event| event["type"] == "routed").unwrap();
            assert!(decision["why"].as_str().unwrap().contains(&format!("of the {name} ")), "{decision}");
            for death in [CrashMode::Before, CrashMode::After] {
                let again = run(&case, death);
                record.assert_same(&again, &format!("{label}, {death:?}"));
            }
        }
    }
}

#[test]
fn a_list_of_ten_thousand_elements_runs_for_a_thousand_with_a_warning_about_the_others() {
    let set =
        |id: &str, values: Value| json!({ "action_type": "set", "action_id": id, "config": { "values": values } });
    let topics = json!([
        { "topic_id": "make", "actions": [set("list", json!({ "people": "{{ range(10000) | list }}" }))] },
        { "topic_id": "each", "for_each": { "in": "people", "as": "person" },
          "actions": [set("count", json!({ "count": "{{ count + 1 }}", "newest": "{{ person }}" }))] },
        { "topic_id": "tell", "actions": [say_action("tell_it", "{{ count }} {{ newest }}")] },
    ]);
    let session = json!({
        "declare": [{ "var": "people", "type": "list" }, { "var": "count", "value": 0 }, { "var": "newest" }],
        "phases": [{ "phase_id": "phase", "topics": topics }],
    });
    let record = run(&json!({ "session": session, "expect": null }), CrashMode::Never);
    assert_eq!((record.status.as_str(), record.said), ("completed", vec!["ai: 1000 999".to_owned()]));
    let warnings: Vec<&Value> = record.events.iter().filter(|event| event["type"] == "warning").collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("the list has 10000"), "{}", warnings[0]);
}

/// A case with a topic for each of 150 elements, which can be entered again, and then a last one.
fn case_with_elements(actions: &Value, last: &Value) -> Value {
    let topics = json!([
        { "topic_id": "each", "for_each": { "in": "range(150) | list", "as": "number" }, "actions": actions },
        { "topic_id": "last", "actions": last },
    ]);
    let session = json!({
        "declare": [{ "var": "count", "value": 0 }, { "var": "tries", "value": 0 }],
        "phases": [{ "phase_id": "phase", "topics": topics }],
    });
    json!({ "session": session, "expect": null })
}

fn set_action(id: &str, values: Value) -> Value {
    json!({ "action_type": "set", "action_id": id, "config": { "values": values } })
}

fn goto_if(id: &str, condition: &str, target: &str) -> Value {
    json!({ "action_type": "condition", "action_id": id, "config": { "cases": [{ "when": condition, "goto": target }] } })
}

#[test]
fn routes_in_one_element_of_a_list_do_not_count_for_the_next() {
    let actions = json!([
        set_action("start", json!({ "tries": 0 })),
        set_action("try", json!({ "tries": "{{ tries + 1 }}" })),
        goto_if("again", "tries < 3", "try"),
        goto_if("forward", "tries == 3", "count_it"),
        set_action("never", json!({ "count": 1000 })),
        set_action("count_it", json!({ "count": "{{ count + 1 }}" })),
    ]);
    let case = case_with_elements(&actions, &json!([say_action("tell", "{{ count }}")]));
    let record = run(&case, CrashMode::Never);
    assert_eq!((record.status.as_str(), record.said), ("completed", vec!["ai: 150".to_owned()]));
}

#[test]
fn routes_that_lead_to_a_topic_with_a_list_again_and_again_fail() {
    // In every element one route, and after the last one another: without a count, this would never end.
    let actions = json!([
        goto_if("forward", "count >= 0", "count_it"),
        set_action("count_it", json!({ "count": "{{ count + 1 }}" })),
    ]);
    let mut case = case_with_elements(&actions, &json!([goto_if("back", "count > 0", "each")]));
    case["session"]["phases"][0]["topics"][0]["for_each"]["in"] = json!("[1, 2]");
    let record = run(&case, CrashMode::Never);
    assert_eq!(record.status, "failed");
    let error = record.events.iter().find(|event| event["type"] == "error").unwrap();
    assert_eq!(error["code"], "endless-routes", "{error}");
}
