//! What a recording answers, and when.

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

fn recording(lines: &[Value], by: ReplayMatching) -> Recording {
    let header = json!({ "recording": 1, "session_id": "s" });
    let text: Vec<String> = std::iter::once(&header).chain(lines).map(Value::to_string).collect();
    Recording::parse("r.jsonl", &text.join("\n"), by).unwrap()
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

async fn asked(recording: &Recording, path: &str, key: (u32, u32), prompt: &str) -> Result<String, ModelError> {
    let request = request(Purpose::Action, path, key, prompt);
    recording.complete(&request, &mut NoLiveOutput).await.map(|reply| reply.text)
}

#[tokio::test]
async fn each_visit_of_an_action_gets_its_own_replies() {
    let lines = [
        line("action", "t/a", (1, 0), "p", "一"),
        line("action", "t#2/a", (1, 0), "p", "二"),
        line("action", "t/a", (1, 1), "q", "三"),
    ];
    let strictly = recording(&lines, ReplayMatching::Prompt);
    for (path, key, prompt, text) in [
        ("t#2/a", (1, 0), "p", "二"),
        ("t/a", (1, 1), "q", "三"),
        ("t/a", (1, 0), "p", "一"),
        ("t/a", (1, 0), "p", "一"),
    ] {
        assert_eq!(asked(&strictly, path, key, prompt).await.unwrap(), text);
    }
    let by_order = recording(&lines, ReplayMatching::Order);
    for text in ["一", "二", "三"] {
        assert_eq!(asked(&by_order, "elsewhere/a", (9, 9), "whatever").await.unwrap(), text);
    }
    let error = asked(&by_order, "t/a", (1, 0), "p").await.unwrap_err();
    assert!(error.to_string().contains("r.jsonl has 3 for `a`"), "{error}");
}

#[tokio::test]
async fn a_call_that_was_not_recorded_or_asks_something_else_is_an_error_that_no_retry_mends() {
    let recording = recording(&[line("action", "t/a", (1, 0), "电话 ***\n好吗", "一")], ReplayMatching::Prompt);
    assert_eq!(asked(&recording, "t/a", (1, 0), "电话 123\n好吗").await.unwrap(), "一");
    let missing = asked(&recording, "t/a", (1, 1), "p").await.unwrap_err();
    assert!(missing.to_string().contains("no such exchange"), "{missing}");
    let error = asked(&recording, "t/a", (1, 0), "电话 123\n行吗").await.unwrap_err();
    assert!(!crate::http::retry::is_transient(&error));
    let told = "the prompt of `a`, call 1 (round 1, opening) differs from the one recorded in r.jsonl:\n\
                message 1 (user):\n  电话 ***\n- 好吗\n+ 行吗";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn of_a_turn_that_was_taken_again_the_last_words_count_and_what_failed_only_when_nothing_followed() {
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
    for by in [ReplayMatching::Prompt, ReplayMatching::Order] {
        let recording = recording(&lines, by);
        let first = asked(&recording, "t/a", (2, 0), "It is 2027-01-01 00:00 (Friday).").await.unwrap();
        assert_eq!((first.as_str(), asked(&recording, "t/a", (2, 1), "q").await.unwrap().as_str()), ("二", "三"));
    }
    let error = asked(&recording(&lines, ReplayMatching::Prompt), "t/a", (5, 1), "q").await.unwrap_err();
    assert!(error.to_string().contains("there was none either: gone"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_came_late_beside_the_conversation_comes_as_late_again() {
    let lines = [
        line("action", "t/a", (1, 0), "p", "一"),
        line("monitor", "t/a", (1, 0), "m", "看"),
        line("action", "t/a", (1, 1), "q", "二"),
        line("monitor", "t/a", (2, 1), "m", "再看"),
    ];
    let recording = Arc::new(recording(&lines, ReplayMatching::Prompt));
    let watch = |key| {
        let recording = Arc::clone(&recording);
        tokio::spawn(async move {
            let request = request(Purpose::Monitor, "t/a", key, "m");
            recording.complete(&request, &mut NoLiveOutput).await.unwrap().text
        })
    };
    let (first, second) = (watch((1, 0)), watch((2, 1)));
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(!first.is_finished() && !second.is_finished());
    asked(&recording, "t/a", (1, 0), "p").await.unwrap();
    assert!(first.is_finished(), "it comes with the call that it followed");
    assert!(!second.is_finished());
    asked(&recording, "t/a", (1, 1), "q").await.unwrap();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), ("看".to_owned(), "再看".to_owned()));
    // Another process goes on behind what was said already.
    let resumed = self::recording(&lines, ReplayMatching::Prompt);
    resumed.replayed_before(Purpose::Action, "a");
    let request = request(Purpose::Monitor, "t/a", (1, 0), "m");
    assert_eq!(resumed.complete(&request, &mut NoLiveOutput).await.unwrap().text, "看");
    // A call that failed is none of those that were replayed, so it does not count as one.
    let mut failed = line("action", "t/z", (1, 0), "p", "");
    failed.as_object_mut().unwrap().remove("text");
    failed["error"] = json!("gone");
    let resumed = self::recording(&[vec![failed], lines.to_vec()].concat(), ReplayMatching::Prompt);
    resumed.replayed_before(Purpose::Action, "a");
    let waited = tokio::time::timeout(Duration::from_secs(9), resumed.complete(&request, &mut NoLiveOutput)).await;
    assert_eq!(waited.unwrap().unwrap().text, "看");
}

#[tokio::test]
async fn what_failed_without_harm_fails_again_in_both_orders_and_its_place_is_not_taken() {
    let mut failed = line("action", "t/a", (1, 1), "p", "");
    failed.as_object_mut().unwrap().remove("text");
    (failed["error"], failed["went_on"]) = (json!("http 401"), json!(true));
    let lines = [line("action", "t/a", (1, 0), "p", "一"), failed, line("action", "t/a", (2, 2), "p", "二")];
    for by in [ReplayMatching::Prompt, ReplayMatching::Order] {
        let recording = recording(&lines, by);
        assert_eq!(asked(&recording, "t/a", (1, 0), "p").await.unwrap(), "一");
        let error = asked(&recording, "t/a", (1, 1), "p").await.unwrap_err();
        assert!(error.is_of_a_model() && error.kind() == "failed_then", "{error}");
        assert_eq!(asked(&recording, "t/a", (2, 2), "p").await.unwrap(), "二");
    }
}

#[test]
fn it_answers_for_monitors_where_one_was_recorded_and_reads_replies_as_then() {
    let mut mended = line("monitor", "t/a", (1, 0), "m", "{}");
    (mended["repair"], mended["reask"]) = (json!(true), json!(3));
    let recording = recording(&[line("action", "t/a", (1, 0), "p", "一"), mended], ReplayMatching::Prompt);
    let of = |purpose, path| recording.manners_of(&request(purpose, path, (1, 0), "m").task);
    assert_eq!(of(Purpose::Monitor, "t/a"), ReplyPolicy { repair: true, reask: 3 });
    assert_eq!(of(Purpose::Action, "t/a"), ReplyPolicy::default());
    assert!(recording.answers(Purpose::Monitor, "a") && !recording.answers(Purpose::Monitor, "b"));
    assert!(!recording.answers(Purpose::Orchestrator, "a") && recording.answers(Purpose::Action, "b"));
}

#[test]
fn what_is_wrong_in_a_recording_is_named() {
    for (text, part) in [
        ("", "is not a recording"),
        ("replies: {}", "`--model replay:FILE`"),
        ("{\"recording\":1}\n{\"purpose\":\"action\"}", "line 2 is not a recorded exchange"),
        ("{\"recording\":1}\n{\"purpose\":\"action\",\"action_id\":\"a\",\"round\":1,\"call\":0}", "line 2"),
        ("{\"recording\":1}\nnonsense", "line 2"),
    ] {
        let error = Recording::parse("r.jsonl", text, ReplayMatching::Prompt).unwrap_err().to_string();
        assert!(error.starts_with("the recording r.jsonl: ") && error.contains(part), "{text}: {error}");
    }
    // One without prompts, as earlier releases had them.
    let older = r#"{"purpose":"action","action_id":"a","round":1,"call":0,"text":"一"}"#;
    assert!(Recording::parse("r.jsonl", older, ReplayMatching::Prompt).is_ok());
}
