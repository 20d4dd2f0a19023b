//! Tests of a conversation that goes through skills, a trigger and a list: its stored data, and that a pipe shows only the messages.

use serde_json::{Value, json};

use crate::process::{Finished, Home, fixture};
use crate::programs::sessions;

/// Runs `detours.yaml` as session `t` with these arguments and this input.
fn talk(home: &Home, arguments: &[&str], input: &str) -> Finished {
    let script = home.script("detours.yaml").display().to_string();
    let replies = home.file("replies.json", &std::fs::read_to_string(fixture("detours.replies.json")).unwrap());
    let model = format!("replay:{}", replies.display());
    let fixed = ["run", &script, "--session", "t", "--model", &model];
    home.finish(fixed.iter().chain(arguments), input)
}

/// Answers that lead into the skill that the trigger inserts in the middle of an action.
const INTO_THE_TRIGGER: &str = "芝麻开门\n说不出来\n嗯\n我不想活了\n";

#[test]
fn a_pipe_shows_only_the_messages() {
    let home = Home::new();
    let finished = talk(&home, &[], &format!("{INTO_THE_TRIGGER}安全\n她做饭\n她种花\n"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let expected = "说一个秘密吧。\n今天怎么样？\n不着急，慢慢来。\n先深呼吸一下，好吗？\n还能多说一点吗？\n你现在安全吗？\n\
                    说说这个人。\n说说这个人。\n再见。\n";
    assert_eq!(finished.out, expected);
}

#[test]
fn a_session_shows_its_location_in_skills_and_list_elements() {
    let home = Home::new();
    assert_eq!(talk(&home, &[], INTO_THE_TRIGGER).code, Some(3));
    let shown = sessions(&home, &["show", "t"]).out;
    assert!(shown.contains("- at: 家庭 › 开始 › safety, round 1\n"), "{shown}");
    assert!(shown.contains("### 家庭 › 开始 › comfort\n\n- **咨询师** ("), "{shown}");

    assert_eq!(home.finish(["sessions", "resume", "t"], "安全\n").code, Some(3));
    let shown = sessions(&home, &["show", "t"]).out;
    assert!(shown.contains("- at: 家庭 › 照料者 (母亲), round 1\n"), "{shown}");
    assert!(!shown.contains("芝麻开门"), "{shown}");
}

#[test]
fn an_export_has_messages_metrics_and_variables_with_their_paths() {
    let home = Home::new();
    talk(&home, &[], &format!("{INTO_THE_TRIGGER}安全\n她做饭\n"));
    let export = home.export("t");
    let paths: Vec<&str> =
        export["transcript"].as_array().unwrap().iter().map(|message| message["path"].as_str().unwrap()).collect();
    assert_eq!(paths[4], "start/ask_mood/comfort/calm", "{paths:?}");
    assert_eq!(paths[8], "start/ask_mood", "the answer that the trigger stepped in front of: {paths:?}");
    assert_eq!(paths.last(), Some(&"people@外婆/ask_story"));
    assert_eq!(export["transcript"][4]["topic_id"], "start");
    assert_eq!(export["transcript"][4]["phase_id"], "family");
    let topics = &export["variables"]["topic"];
    assert_eq!(topics["start/ask_mood/comfort"]["feeling"]["value"], "平静", "{topics}");
    assert_eq!(topics["people@外婆"]["caregiver"]["value"], "外婆", "{topics}");
    let history = export["progress_suggestion_history"].as_array().unwrap();
    let blocked: Vec<&Value> = history.iter().filter(|row| row["progress_suggestion"] == "blocked").collect();
    assert_eq!(blocked.len(), 1, "{history:?}");
    assert_eq!(
        (&blocked[0]["action_id"], &blocked[0]["action_type"], &blocked[0]["round"], &blocked[0]["path"]),
        (&json!("ask_mood"), &json!("ai_ask"), &json!(1), &json!("start/ask_mood"))
    );
    let metrics = export["action_metrics_history"].as_array().unwrap();
    assert_eq!(metrics.len(), history.len());
    assert!(metrics.iter().any(|row| row["metrics"]["user_engagement"] == "很低，提到***"), "{metrics:?}");
    assert_eq!((&export["monitor_feedback"], &export["plans"]), (&json!([]), &json!([])));
}
