//! Tests of the scripted model: selection of replies, errors, and virtual time.

use serde_json::json;

use super::*;
use crate::model::provider::NoLiveOutput;

fn task(purpose: Purpose, action_id: &str, round: u32, answered: bool) -> Task {
    Task {
        purpose,
        kind: "ai_ask".into(),
        action_id: action_id.into(),
        answer: answered.then(|| "小林".to_owned()),
        round,
        opening: !answered,
        ..Task::default()
    }
}

fn request(task: Task) -> ModelRequest {
    ModelRequest { task, ..ModelRequest::default() }
}

fn entry(next: NextReply) -> ReplyEntry {
    ReplyEntry { round: None, answered: None, after: Duration::ZERO, reply: next }
}

fn text(text: &str) -> ReplyEntry {
    entry(NextReply::Text(text.to_owned()))
}

fn http(status: u16) -> ReplyEntry {
    entry(NextReply::Http { status, retry_after: None, message: String::new() })
}

fn model(lists: Vec<(ReplyKey, Vec<ReplyEntry>)>) -> (Arc<Scripted>, Arc<VirtualTime>) {
    let time = Arc::new(VirtualTime::default());
    let lists = lists.into_iter().map(|(key, entries)| ReplyList { key, entries }).collect();
    (Arc::new(Scripted::new(lists, Arc::clone(&time))), time)
}

fn for_action(id: &str) -> ReplyKey {
    ReplyKey::One(Purpose::Action, id.to_owned())
}

/// Sends a request and advances the time until the reply arrives.
async fn ask(model: &Scripted, time: &VirtualTime, task: Task) -> Result<ModelReply, ModelError> {
    let (request, mut live) = (request(task), NoLiveOutput);
    let answer = model.complete(&request, &mut live);
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = tokio::task::yield_now() => time.advance_to(time.next_wakeup().expect("it sleeps")),
        }
    }
}

#[tokio::test]
async fn actions_use_their_own_list_or_the_shared_one() {
    let monitor = ReplyKey::Every(Purpose::Monitor);
    let (model, time) = model(vec![
        (for_action("a"), vec![text("a1"), text("a2")]),
        (ReplyKey::Anyone, vec![text("x1"), text("x2")]),
        (monitor, vec![text("m")]),
    ]);
    for (purpose, id, expected) in [
        (Purpose::Action, "a", "a1"),
        (Purpose::Action, "b", "x1"),
        (Purpose::Monitor, "a", "m"),
        (Purpose::Action, "a", "a2"),
        (Purpose::Action, "c", "x2"),
    ] {
        assert_eq!(ask(&model, &time, task(purpose, id, 1, false)).await.unwrap().text, expected);
    }
    assert!(model.answers(Purpose::Monitor, "z") && !model.answers(Purpose::Orchestrator, "a"));
    assert_eq!((model.unused(), model.missing()), (vec![], vec![]));
    assert!(ask(&model, &time, task(Purpose::Action, "a", 2, true)).await.is_err());
    let missing = model.missing();
    assert_eq!((missing[0].list, missing[0].requests, missing[0].round), (Some(0), 3, 2));
}

#[tokio::test]
async fn an_error_uses_one_attempt_and_there_are_four() {
    let transient = || {
        vec![
            http(503),
            entry(NextReply::Timeout(TimeoutPhase::FirstToken)),
            entry(NextReply::Cut(3, Box::new(NextReply::Text("好的".into())))),
            entry(NextReply::Unreachable),
        ]
    };
    let (model, time) = model(vec![(for_action("a"), transient()), (for_action("b"), vec![http(401), text("b")])]);
    let error = ask(&model, &time, task(Purpose::Action, "a", 1, false)).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { attempts: 4, .. }), "{error}");
    assert!(time.now() > Duration::from_secs(60), "the timeout took its minute");
    let error = ask(&model, &time, task(Purpose::Action, "b", 1, false)).await.unwrap_err();
    assert!(matches!(error, ModelError::Http { status: 401, attempts: 1, .. }), "{error}");
    assert_eq!(ask(&model, &time, task(Purpose::Action, "b", 1, false)).await.unwrap().text, "b");
}

#[tokio::test]
async fn retry_after_is_honored() {
    let busy = NextReply::Http { status: 429, retry_after: Some(Duration::from_secs(2)), message: String::new() };
    let (model, time) = model(vec![(for_action("a"), vec![entry(busy), text("好")])]);
    let reply = ask(&model, &time, task(Purpose::Action, "a", 1, false)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts, time.now()), ("好", 2, Duration::from_secs(2)));
}

#[tokio::test]
async fn a_reply_by_round_is_not_part_of_the_order_and_counts_as_used_once() {
    let second = ReplyEntry { round: Some(2), answered: Some(true), ..text("zweite") };
    let (model, time) = model(vec![(for_action("a"), vec![second, text("1"), text("2")])]);
    for (round, answered, expected) in [(1, false, "1"), (2, true, "zweite"), (2, true, "zweite"), (2, false, "2")] {
        let reply = ask(&model, &time, task(Purpose::Action, "a", round, answered)).await.unwrap();
        assert_eq!(reply.text, expected);
    }
    assert_eq!(model.unused(), []);
}

#[test]
fn missing_fields_of_a_value_are_set_to_the_defaults_of_the_schema() {
    let schema = json!({ "properties": {
        "safety_risk": { "default": { "detected": false } },
        "content": { "default": "" },
        "metadata": { "default": {}, "properties": { "tone": { "default": "" }, "crisis_signal": { "default": false } } },
        "name": {},
    } });
    // A server receives the fields in another order and without defaults.
    let sent = json!({ "properties": {
        "metadata": { "properties": { "crisis_signal": {}, "tone": {} } }, "name": {}, "safety_risk": {}, "content": {},
    } });
    let task = Task { reply_schema: Some(Arc::new(schema)), ..task(Purpose::Action, "a", 1, false) };
    let request = ModelRequest { schema: Some(Arc::new(sent)), ..request(task) };
    let value = json!({ "own": 1, "metadata": { "crisis_signal": true }, "content": 5 });
    assert_eq!(
        reply_text(&NextReply::Value(value.into()), &request),
        r#"{"metadata":{"crisis_signal":true,"tone":""},"safety_risk":{"detected":false},"content":5,"own":1}"#
    );
    assert_eq!(reply_text(&NextReply::Value(json!([1]).into()), &request), "[1]");
    let exact = ExactValue::parse(r#"{"own":1.10,"content":[2.50]}"#).unwrap();
    assert!(reply_text(&NextReply::Value(exact), &request).ends_with(r#""content":[2.50],"own":1.10}"#));
}
