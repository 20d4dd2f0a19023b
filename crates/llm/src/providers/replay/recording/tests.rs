//! Tests of replaying recordings.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::message::Role;
use crate::model::provider::NoLiveOutput;

fn line(purpose: &str, path: &str, key: (u32, u32), prompt: &str, text: &str) -> Value {
    let action_id = path.rsplit('/').next().unwrap();
    json!({ "purpose": purpose, "action_id": action_id, "path": path, "round": key.0, "call": key.1,
        "messages": [{ "role": "user", "content": prompt }], "text": text, "tokens_in": 7 })
}

fn recording(lines: &[Value], matching: ReplayMatching) -> Recording {
    let header = json!({ "recording": 1, "session_id": "s" });
    let text: Vec<String> = std::iter::once(&header).chain(lines).map(Value::to_string).collect();
    Recording::parse("r.jsonl", &text.join("\n"), matching).unwrap()
}

fn request(purpose: Purpose, path: &str, (round, call): (u32, u32), prompt: &str) -> ModelRequest {
    let task = Task {
        purpose,
        kind: "ai_ask".into(),
        action_id: path.rsplit('/').next().unwrap().into(),
        path: path.into(),
        round,
        call,
        ..Task::default()
    };
    let messages = vec![ChatMessage { role: Role::User, content: prompt.into() }];
    ModelRequest { messages, task, ..ModelRequest::default() }
}

async fn ask(recording: &Recording, path: &str, key: (u32, u32), prompt: &str) -> Result<String, ModelError> {
    let request = request(Purpose::Action, path, key, prompt);
    recording.complete(&request, &mut NoLiveOutput).await.map(|reply| reply.text)
}

#[tokio::test]
async fn each_instance_of_an_action_gets_its_own_replies() {
    let lines = [
        line("action", "t/a", (1, 0), "p", "一"),
        line("action", "t#2/a", (1, 0), "p", "二"),
        line("action", "t/a", (1, 1), "q", "三"),
    ];
    let by_prompt = recording(&lines, ReplayMatching::Prompt);
    for (path, key, prompt, text) in [
        ("t#2/a", (1, 0), "p", "二"),
        ("t/a", (1, 1), "q", "三"),
        ("t/a", (1, 0), "p", "一"),
        ("t/a", (1, 0), "p", "一"),
    ] {
        assert_eq!(ask(&by_prompt, path, key, prompt).await.unwrap(), text);
    }
    let by_order = recording(&lines, ReplayMatching::Order);
    for text in ["一", "二", "三"] {
        assert_eq!(ask(&by_order, "elsewhere/a", (9, 9), "whatever").await.unwrap(), text);
    }
    let error = ask(&by_order, "t/a", (1, 0), "p").await.unwrap_err();
    assert!(error.to_string().contains("r.jsonl has 3 for `a`"), "{error}");
}

#[tokio::test]
async fn unrecorded_calls_and_different_prompts_are_permanent_errors() {
    let recording = recording(&[line("action", "t/a", (1, 0), "电话 ***\n好吗", "一")], ReplayMatching::Prompt);
    assert_eq!(ask(&recording, "t/a", (1, 0), "电话 123\n好吗").await.unwrap(), "一");
    let missing = ask(&recording, "t/a", (1, 1), "p").await.unwrap_err();
    assert!(missing.to_string().contains("no such exchange"), "{missing}");
    let error = ask(&recording, "t/a", (1, 0), "电话 123\n行吗").await.unwrap_err();
    assert!(!crate::http::retry::is_transient(&error));
    let expected = "the prompt of `a`, call 1 (round 1, opening) differs from the one recorded in r.jsonl:\n\
                message 1 (user):\n  电话 ***\n- 好吗\n+ 行吗";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn the_last_call_of_a_repeated_turn_counts_and_failed_calls_only_if_nothing_follows() {
    let mut failed = line("action", "t/a", (2, 1), "q", "");
    failed.as_object_mut().unwrap().remove("text");
    failed["error"] = json!("gone");
    let mut never = failed.clone();
    never["round"] = json!(5);
    let lines = [
        line("action", "t/a", (2, 0), "It is 2026-11-21 20:00 (Saturday).", "一"),
        failed,
        line("action", "t/a", (2, 0), "It is 2026-11-21 21:30 (Saturday).", "二"),
        line("action", "t/a", (2, 1), "q", "三"),
        never,
    ];
    for matching in [ReplayMatching::Prompt, ReplayMatching::Order] {
        let recording = recording(&lines, matching);
        let first = ask(&recording, "t/a", (2, 0), "It is 2027-01-01 00:00 (Friday).").await.unwrap();
        assert_eq!((first.as_str(), ask(&recording, "t/a", (2, 1), "q").await.unwrap().as_str()), ("二", "三"));
    }
    let error = ask(&recording(&lines, ReplayMatching::Prompt), "t/a", (5, 1), "q").await.unwrap_err();
    assert!(error.to_string().contains("there was none either: gone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn background_replies_are_replayed_at_the_recorded_position() {
    let lines = [
        line("action", "t/a", (1, 0), "p", "一"),
        line("monitor", "t/a", (1, 0), "m", "看"),
        line("action", "t/a", (1, 1), "q", "二"),
        line("monitor", "t/a", (2, 1), "m", "再看"),
    ];
    let recording = Arc::new(recording(&lines, ReplayMatching::Prompt));
    let spawn_monitor = |key| {
        let recording = Arc::clone(&recording);
        tokio::spawn(async move {
            let request = request(Purpose::Monitor, "t/a", key, "m");
            recording.complete(&request, &mut NoLiveOutput).await.unwrap().text
        })
    };
    let (first, second) = (spawn_monitor((1, 0)), spawn_monitor((2, 1)));
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(!first.is_finished() && !second.is_finished());
    ask(&recording, "t/a", (1, 0), "p").await.unwrap();
    assert!(first.is_finished(), "it comes with the call that it followed");
    assert!(!second.is_finished());
    ask(&recording, "t/a", (1, 1), "q").await.unwrap();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), ("看".to_owned(), "再看".to_owned()));
    // A new process continues after the replayed calls.
    let resumed = self::recording(&lines, ReplayMatching::Prompt);
    resumed.mark_replayed(Purpose::Action, "a");
    let request = request(Purpose::Monitor, "t/a", (1, 0), "m");
    assert_eq!(resumed.complete(&request, &mut NoLiveOutput).await.unwrap().text, "看");
    // A failed call does not count as replayed.
    let mut failed = line("action", "t/z", (1, 0), "p", "");
    failed.as_object_mut().unwrap().remove("text");
    failed["error"] = json!("gone");
    let resumed = self::recording(&[vec![failed], lines.to_vec()].concat(), ReplayMatching::Prompt);
    resumed.mark_replayed(Purpose::Action, "a");
    let waited = tokio::time::timeout(Duration::from_secs(9), resumed.complete(&request, &mut NoLiveOutput)).await;
    assert_eq!(waited.unwrap().unwrap().text, "看");
}

#[tokio::test(start_paused = true)]
async fn replies_to_an_answer_that_was_taken_back_are_not_waited_for_and_not_in_the_order() {
    let mut lines = vec![
        line("action", "t/a", (1, 0), "p", "一"),
        line("action", "t/a", (1, 1), "wrong", "二"),
        line("action", "t/b", (1, 0), "after wrong", "三"),
        line("action", "t/a", (1, 1), "right", "四"),
        line("action", "t/b", (1, 0), "after right", "五"),
        line("monitor", "t/b", (1, 0), "m", "看"),
    ];
    for (line, seq) in lines.iter_mut().zip([5, 8, 11, 14, 17, 20]) {
        line["seq"] = json!(seq);
    }
    lines.insert(3, json!({ "taken_back": { "from_seq": 7, "to_seq": 12 } }));
    let by_prompt = recording(&lines, ReplayMatching::Prompt);
    for (path, key, prompt) in [("t/a", (1, 0), "p"), ("t/a", (1, 1), "right"), ("t/b", (1, 0), "after right")] {
        ask(&by_prompt, path, key, prompt).await.unwrap();
    }
    let monitor = request(Purpose::Monitor, "t/b", (1, 0), "m");
    let waited = tokio::time::timeout(Duration::from_secs(9), by_prompt.complete(&monitor, &mut NoLiveOutput)).await;
    assert_eq!(waited.unwrap().unwrap().text, "看");
    assert_eq!(ask(&by_prompt, "t/a", (1, 1), "wrong").await.unwrap(), "二", "somebody may take it back again");
    let by_order = recording(&lines, ReplayMatching::Order);
    for (path, key, text) in [("t/a", (1, 0), "一"), ("t/a", (1, 1), "四"), ("t/b", (1, 0), "五")] {
        assert_eq!(ask(&by_order, path, key, "other").await.unwrap(), text);
    }
}

#[tokio::test]
async fn recovered_failures_are_replayed_in_both_modes() {
    let mut failed = line("action", "t/a", (1, 1), "p", "");
    failed.as_object_mut().unwrap().remove("text");
    (failed["error"], failed["went_on"]) = (json!("http 401"), json!(true));
    let lines = [line("action", "t/a", (1, 0), "p", "一"), failed, line("action", "t/a", (2, 2), "p", "二")];
    for matching in [ReplayMatching::Prompt, ReplayMatching::Order] {
        let recording = recording(&lines, matching);
        assert_eq!(ask(&recording, "t/a", (1, 0), "p").await.unwrap(), "一");
        let error = ask(&recording, "t/a", (1, 1), "p").await.unwrap_err();
        assert!(error.is_model_failure() && error.kind() == "failed_then", "{error}");
        assert_eq!(ask(&recording, "t/a", (2, 2), "p").await.unwrap(), "二");
    }
}

#[test]
fn recorded_monitors_are_answered_with_the_recorded_policy() {
    let mut repaired = line("monitor", "t/a", (1, 0), "m", "{}");
    (repaired["repair"], repaired["reask"]) = (json!(true), json!(3));
    let recording = recording(&[line("action", "t/a", (1, 0), "p", "一"), repaired], ReplayMatching::Prompt);
    let policy = |purpose, path| recording.reply_policy_for(&request(purpose, path, (1, 0), "m").task);
    assert_eq!(policy(Purpose::Monitor, "t/a"), ReplyPolicy { repair: true, reask: 3 });
    assert_eq!(policy(Purpose::Action, "t/a"), ReplyPolicy::default());
    assert!(recording.answers(Purpose::Monitor, "a") && !recording.answers(Purpose::Monitor, "b"));
    assert!(!recording.answers(Purpose::Orchestrator, "a") && recording.answers(Purpose::Action, "b"));
}

#[test]
fn errors_in_a_recording_are_reported() {
    for (text, part) in [
        ("", "is not a recording"),
        ("replies: {}", "`--model replay:FILE`"),
        ("{\"recording\":1}\n{\"purpose\":\"action\"}", "line 2 is not a recorded exchange"),
        ("{\"recording\":1}\n{\"purpose\":\"action\",\"action_id\":\"a\",\"round\":1,\"call\":0}", "line 2"),
        ("{\"recording\":1}\nnonsense", "line 2"),
        ("{\"recording\":9}", "its format is version 9, and this release reads version 1"),
    ] {
        let error = Recording::parse("r.jsonl", text, ReplayMatching::Prompt).unwrap_err().to_string();
        assert!(error.starts_with("the recording r.jsonl: ") && error.contains(part), "{text}: {error}");
    }
    // A recording without prompts, as created by earlier releases.
    let legacy = r#"{"purpose":"action","action_id":"a","round":1,"call":0,"text":"一"}"#;
    assert!(Recording::parse("r.jsonl", legacy, ReplayMatching::Prompt).is_ok());
}

#[tokio::test]
async fn calls_for_elements_whose_names_are_masked_come_in_their_order() {
    let lines = [
        line("action", "each@***/ask", (1, 0), "*** is here", "first"),
        line("action", "each@***/ask", (1, 0), "*** is here", "second"),
        line("action", "other@kept/ask", (1, 0), "other", "third"),
    ];
    let recording = recording(&lines, ReplayMatching::Prompt);
    assert_eq!(ask(&recording, "each@Ann/ask", (1, 0), "Ann is here").await.unwrap(), "first");
    assert_eq!(ask(&recording, "each@2/ask", (1, 0), "*** is here").await.unwrap(), "second");
    for path in ["other@Ann/ask", "each/ask", "each@Ann#2/ask", "each@Ann/more/ask"] {
        assert!(ask(&recording, path, (1, 0), "Ann is here").await.is_err(), "{path}");
    }
}
