//! Tests of `sessions retry --turn` (docs/begin-again.md): answers that are given again, models that are asked only from the first difference
//! on, and effects that are not repeated.

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};
use crate::server::{Server, ServerBehavior};
use crate::session_output::journal;

/// Four questions. Each calls the model for the question and for the answer.
const INTERVIEW: &str = "
session:
  session_id: interview
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: 问第一件事, monitor: off, max_rounds: 1 } }
            - { action_type: ai_ask, action_id: second, config: { content: 问第二件事, monitor: off, max_rounds: 1 } }
            - { action_type: ai_ask, action_id: third, config: { content: 问第三件事, monitor: off, max_rounds: 1 } }
            - { action_type: ai_ask, action_id: fourth, config: { content: 问第四件事, monitor: off, max_rounds: 1 } }
";

const REPLY: &str = r#"{ "content": "请说。", "EXIT": "NO", "BRIEF": "", "safety_risk": { "detected": false },
    "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "平静", "crisis_signal": false },
    "metrics": { "information_completeness": "一般", "user_engagement": "投入", "emotional_intensity": "平静", "reply_relevance": "切题" } }"#;

/// A template of the project, like the built-in one, with another line.
fn change_template(home: &Home) {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/_system/config/default/ai_ask_v1.md");
    let text = std::fs::read_to_string(own).unwrap();
    home.put("_system/config/default/ai_ask_v1.md", text + "\n请简短。\n");
}

fn call(home: &Home, line: &str, input: &str) -> Finished {
    let mut command = home.command(line.split(' '));
    command.env("TZ", "UTC").env("BCC_TRUST", "1");
    finished(command, input)
}

/// The interview `one`, led by a model.
fn interviewed() -> (Home, Server) {
    let server = Server::start(vec![ServerBehavior::Answers(REPLY.to_owned())]);
    let home = Home::new();
    let model = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", server.base_url);
    home.put("bcc-script.toml", model);
    home.put("s.yaml", INTERVIEW);
    let done = call(&home, "run s.yaml --session one", "一\n二\n三\n四\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.requests().len(), 8);
    (home, server)
}

fn preview(home: &Home, line: &str) -> Value {
    let done = call(home, &format!("sessions retry one {line} --preview --json"), "");
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}

/// The id of the session that was started last.
fn newest(home: &Home) -> String {
    let listed: Value = serde_json::from_str(&call(home, "sessions list --json", "").out).unwrap();
    listed["sessions"][0]["id"].as_str().unwrap().to_owned()
}

fn said(home: &Home, id: &str) -> Vec<(String, String)> {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
    let events = journal(home, id);
    events
        .iter()
        .filter(|event| event["type"] == "message")
        .map(|event| (text(event, "role"), text(event, "text")))
        .collect()
}

#[test]
fn an_answer_that_nobody_has_given_is_said_not_to_exist() {
    let (home, _server) = interviewed();
    for turn in ["5", "6"] {
        let refused = call(&home, &format!("sessions retry one --turn {turn}"), "");
        let expected = format!("session `one` has 4 answers, and no answer {turn}");
        assert!(refused.code == Some(2) && refused.err.contains(&expected), "{refused:?}");
    }
}

#[test]
fn models_are_asked_only_from_the_first_difference_on_and_as_often_as_was_said_before() {
    let (home, server) = interviewed();
    let earlier = said(&home, "one");
    // Nothing has changed: no call.
    let told = preview(&home, "--turn 3");
    let calls = json!({ "earlier": 3, "recorded": 3, "asked": 0 });
    assert_eq!((&told["answers"], &told["model_calls"], &told["first_difference"]), (&json!(2), &calls, &json!(null)));
    let done = call(&home, "sessions retry one --turn 3", "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("the replies of 3 of 3 are used again; no model is asked"), "{}", done.err);
    assert_eq!(server.requests().len(), 8);
    assert_eq!(said(&home, &newest(&home)), said(&home, "one"));

    // A changed template: every prompt from the third answer on is another one. Without `--script`, the session keeps its own.
    change_template(&home);
    assert_eq!(preview(&home, "--turn 3")["model_calls"]["asked"], 0);
    let told = preview(&home, "--turn 3 --script s.yaml");
    assert_eq!(told["model_calls"], json!({ "earlier": 3, "recorded": 0, "asked": 3 }));
    assert_eq!(told["first_difference"], json!({ "action_id": "third", "purpose": "action", "round": 1 }));
    assert_eq!(server.requests().len(), 8, "a preview calls no model");
    let done = call(&home, "sessions retry one --turn 3 --script s.yaml", "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.requests().len(), 8 + 3);
    assert!(server.requests()[8..].iter().all(|request| request.body.contains("请简短。")));
    let new = newest(&home);
    let answers: Vec<String> =
        said(&home, &new).into_iter().filter(|(role, _)| role == "user").map(|(_, text)| text).collect();
    assert_eq!(answers, ["一", "二", "三", "四"]);
    assert_eq!(journal(&home, &new)[0]["retry_of"], "one");

    // An edited last question: what comes before it is used again.
    home.put("edited.yaml", INTERVIEW.replace("问第四件事", "问最后一件事"));
    std::fs::remove_dir_all(home.path().join("_system")).unwrap();
    let told = preview(&home, "--turn 0 --script edited.yaml");
    assert_eq!(told["model_calls"], json!({ "earlier": 8, "recorded": 6, "asked": 2 }));
    assert_eq!(told["first_difference"]["action_id"], "fourth");
    let before = server.requests().len();
    assert_eq!(call(&home, "sessions retry one --turn 0 --script edited.yaml", "").code, Some(0));
    assert_eq!(server.requests().len(), before + 2);
    // The earlier session is as it was.
    assert_eq!(said(&home, "one"), earlier);
}

/// Prompts contain the time: whenever the next minute begins in a conversation, they are the same when it begins again.
#[test]
fn replies_are_used_again_wherever_the_next_minute_begins() {
    let home = Home::new();
    let question = "            - { action_type: ai_ask, action_id: third";
    let (two_questions, _) = INTERVIEW.split_once(question).unwrap();
    home.put("s.yaml", two_questions);
    let mut minute = 1;
    loop {
        // An event takes a millisecond: the event `minute` is the first one of the next minute.
        let clock = format!("2026-11-21T20:00:59.{:03}Z", 1000 - minute);
        let id = format!("minute-{minute}");
        let done = call(&home, &format!("run s.yaml --model offline --clock {clock} --session {id}"), "Ann\nBob\n");
        assert_eq!(done.code, Some(0), "{done:?}");
        // The prompts say the times of then.
        let prompts = |id: &str| -> Vec<Value> {
            let events = journal(&home, id).into_iter().filter(|event| event["type"] == "outcome");
            events.map(|event| event["debug_info"]["llm_prompt"].clone()).collect()
        };
        for turn in 0..=2 {
            let done = call(&home, &format!("sessions retry {id} --turn {turn} --json"), "");
            assert_eq!(done.code, Some(0), "{done:?}");
            assert!(done.err.contains("no model is asked"), "minute {minute}, turn {turn}: {done:?}");
            let first: Value = serde_json::from_str(done.out.lines().next().unwrap()).unwrap();
            let same = prompts(first["session_id"].as_str().unwrap()) == prompts(&id);
            assert!(same, "minute {minute}, turn {turn}");
        }
        if minute == journal(&home, &id).len() {
            break;
        }
        minute += 1;
    }
    assert!(minute > 20, "{minute} events");
}

#[test]
fn another_model_is_asked_for_everything() {
    let (home, server) = interviewed();
    let told = preview(&home, "--turn 1 --model offline");
    assert_eq!(told["model_calls"], json!({ "earlier": 7, "recorded": 0, "asked": 7 }));
    let done = call(&home, "sessions retry one --turn 1 --model offline", "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.requests().len(), 8);
    assert!(done.err.contains("a model is asked, about 7 times"), "{}", done.err);
    let questions = said(&home, &newest(&home));
    assert_eq!(questions[2].1, "问第二件事", "what the offline responder says");
}

#[test]
fn the_person_goes_on_after_the_answers_that_are_given_again() {
    let (home, _server) = interviewed();
    let longer = INTERVIEW.to_owned()
        + "            - { action_type: ai_ask, action_id: fifth, config: { content: 问第五件事, delivery: verbatim, max_rounds: 1 } }\n";
    home.put("longer.yaml", longer);
    let done = call(&home, "sessions retry one --turn 4 --script longer.yaml", "五\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    let answers: Vec<_> = said(&home, &newest(&home)).into_iter().filter(|(role, _)| role == "user").collect();
    assert_eq!(answers.last().unwrap().1, "五");
    // Without another answer, it waits for one.
    assert_eq!(call(&home, "sessions retry one --turn 4 --script longer.yaml", "").code, Some(3));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (home, server) = interviewed();
    home.put("other.yaml", INTERVIEW.replace("session_id: interview", "session_id: other"));
    home.put("shorter.yaml", INTERVIEW.replace("action_id: second", "action_id: renamed"));
    home.put("broken.yaml", INTERVIEW.replace("ai_ask", "ai_aks"));
    let cases = [
        ("--turn 6", "has 4 answers, and no answer 6"),
        ("--turn 2 --script other.yaml", "belongs to the script `interview`, not to `other`"),
        ("--turn 2 --script shorter.yaml", "the edited script has no"),
        ("--turn 2 --script broken.yaml", "ai_aks"),
        ("--turn 2 --scheme english", "--script"),
        ("--turn 2 --from second", "cannot be used with"),
    ];
    for (line, expected) in cases {
        let done = call(&home, &format!("sessions retry one {line}"), "");
        assert!(done.code == Some(2) && done.err.contains(expected), "{line}: {done:?}");
    }
    let listed: Value = serde_json::from_str(&call(&home, "sessions list --json", "").out).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(server.requests().len(), 8);
}

/// A question, and a command that runs after its answer.
const ORDER: &str = "
session:
  session_id: order
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: What?, delivery: verbatim, max_rounds: 1 } }
            - action_type: command
              action_id: send
              on_interrupted: retry
              config: { command: [sh, -c, 'echo run >> send.log'] }
            - { action_type: ai_ask, action_id: more, config: { content: More?, delivery: verbatim, max_rounds: 1 } }
";

#[test]
fn an_effect_is_repeated_only_if_the_person_says_so() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("s.yaml", ORDER);
    assert_eq!(call(&home, "run s.yaml --session one", "tea\nno\n").code, Some(0));
    let runs = || std::fs::read_to_string(home.path().join("send.log")).unwrap().lines().count();
    assert_eq!(runs(), 1);
    assert_eq!(preview(&home, "--turn 1")["effects"], 1);
    // It asks, although the author lets interrupted commands run again: nothing has interrupted this one.
    let asked = call(&home, "sessions retry one --turn 1", "");
    assert_eq!(asked.code, Some(3), "{asked:?}");
    assert!(asked.out.contains("The session that this one repeats has already done this"), "{asked:?}");
    assert_eq!(runs(), 1);
    // The decision holds across processes, and the answers that are left are the person's to give.
    let skipped = call(&home, &format!("sessions resume {}", newest(&home)), "skip\nno\n");
    assert_eq!((skipped.code, runs()), (Some(0), 1), "{skipped:?}");
    // In one process, the rest of the answers is given.
    let skipped = call(&home, "sessions retry one --turn 1", "skip\n");
    assert_eq!((skipped.code, runs()), (Some(0), 1), "{skipped:?}");
    let again = call(&home, "sessions retry one --turn 1", "again\n");
    assert_eq!((again.code, runs()), (Some(0), 2), "{again:?}");
    // After it, there is nothing to repeat.
    assert_eq!(preview(&home, "--turn 2")["effects"], 0);
    assert_eq!(call(&home, "sessions retry one --turn 2", "").code, Some(0));
    assert_eq!(runs(), 2);
}

#[test]
fn what_a_user_has_said_once_does_not_change_what_other_sessions_know_of_them() {
    let home = Home::new();
    home.put(
        "s.yaml",
        "
session:
  session_id: known
  declare: [{ var: name, type: string, scope: global }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: Who?, delivery: verbatim, max_rounds: 1, output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: more, config: { content: 'Well, {{ name }}?', delivery: verbatim, max_rounds: 1, output: [{ get: name }] } }
",
    );
    assert_eq!(call(&home, "run s.yaml --session one --user ann", "Ann\nAnna\n").code, Some(0));
    assert_eq!(call(&home, "sessions retry one --turn 1", "").code, Some(0));
    let new = newest(&home);
    let export = home.export(&new);
    assert_eq!(export["session"]["user"], json!(new));
    assert_eq!(export["variables"]["global"]["name"]["value"], "Anna");
    assert_eq!(home.export("one")["session"]["user"], "ann");
    // What is kept is known from the start, and an edited script adds what it declares.
    let known = std::fs::read_to_string(home.path().join("s.yaml")).unwrap();
    let edited = known
        .replace("scope: global }]", "scope: global }, { var: place, type: string, value: home, scope: global }]")
        .replace("content: Who?", "content: 'Who, {{ name }} at {{ place }}?'");
    home.put("edited.yaml", edited);
    assert_eq!(call(&home, "sessions retry one --turn 0 --script edited.yaml", "").code, Some(0));
    assert_eq!(said(&home, &newest(&home))[0].1, "Who, Anna at home?");
}

/// A question that depends on a variable of the topic, between two that show variables of the session and of the phase.
const DECLARING: &str = "
session:
  session_id: declaring
  declare: [{ var: greeting, type: string, value: Hello }, { var: kept, type: string, value: old }]
  phases:
    - phase_id: p
      declare: [{ var: place, type: string, value: home }]
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: '{{ greeting }} {{ place }} {{ kept }}', delivery: verbatim, max_rounds: 1, output: [{ get: kept }] } }
            - { action_type: ai_ask, action_id: second, config: { content: '{{ greeting }} {{ place }} {{ kept }}', delivery: verbatim, max_rounds: 1 } }
";

#[test]
fn an_edited_script_declares_variables_that_nobody_has_set_anew() {
    let home = Home::new();
    home.put("s.yaml", DECLARING);
    assert_eq!(call(&home, "run s.yaml --session one", "mine\nyes\n").code, Some(0));
    let edited = DECLARING
        .replace("value: Hello", "value: Welcome")
        .replace("value: home", "value: school")
        .replace("value: old", "value: new")
        .replace("- topic_id: t", "- topic_id: t\n          declare: [{ var: mood, type: string, value: good }]")
        .replace("action_id: second,", "action_id: second, condition: \"mood == 'good'\",");
    home.put("edited.yaml", edited);
    // From the start, a value that was declared is that of the edited script; an answer is given again, and sets its variable.
    let questions = |turn: u64| -> Vec<String> {
        let done = call(&home, &format!("sessions retry one --turn {turn} --script edited.yaml"), "");
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(done.err.contains("a model is asked, about once"), turn == 2, "{}", done.err);
        let said = said(&home, &newest(&home)).into_iter();
        said.filter(|(role, _)| role != "user").map(|(_, text)| text).collect()
    };
    assert_eq!(questions(0), ["Welcome school new", "Welcome school mine"]);
    assert_eq!(questions(1), ["Hello home old", "Welcome school mine"]);
    // What was answered before stays.
    assert_eq!(questions(2), ["Hello home old", "Hello home mine"]);
}

/// A loop between two questions.
const LOOP: &str = "
session:
  session_id: report
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: 开始？, delivery: verbatim, monitor: off, max_rounds: 1 } }
            - { action_type: behavior_loop, action_id: write, config: { target: 一段话, max_behaviors: 3 } }
            - { action_type: ai_ask, action_id: second, config: { content: 结束？, delivery: verbatim, monitor: off, max_rounds: 1 } }
";

/// The prompts and replies of a loop are stored as those of a conversation are, so that no model is asked again.
#[test]
fn the_replies_in_a_behavior_loop_are_used_again() {
    let replies = [
        REPLY,
        r#"{"actions": [{"action": "add", "content": "一"}]}"#,
        r#"{"target_achieved": false, "reason": "短"}"#,
        r#"{"actions": [{"action": "add", "content": "二"}]}"#,
        r#"{"target_achieved": true, "reason": "好"}"#,
        REPLY,
    ];
    let server = Server::start(replies.map(|reply| ServerBehavior::Answers(reply.to_owned())).to_vec());
    let home = Home::new();
    let model = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", server.base_url);
    home.put("bcc-script.toml", model);
    home.put("s.yaml", LOOP);
    let done = call(&home, "run s.yaml --session one", "好\n好\n");
    assert_eq!((done.code, server.requests().len()), (Some(0), 6), "{done:?}");
    let exported = call(&home, "sessions export one --calls", "");
    let exported: Value = serde_json::from_str(&exported.out).unwrap();
    let stored: Vec<&str> = exported["model_calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|call| {
            assert_eq!(call["debug_info"].is_object(), call["location"]["action_id"] == "write", "{call}");
            call["debug_info"]["llm_response"].as_str()
        })
        .collect();
    assert_eq!(stored, replies[1..5]);
    let planned = preview(&home, "--turn 0");
    assert_eq!(planned["model_calls"], json!({ "earlier": 6, "recorded": 6, "asked": 0 }), "{planned}");
    let done = call(&home, "sessions retry one --turn 0", "");
    assert_eq!((done.code, server.requests().len()), (Some(0), 6), "{done:?}");
}
