//! Injects every failure of a model's server at every byte of its answer, on real sockets and in both protocols. Nothing panics, the
//! result is a reply or an error of a known kind after a known number of attempts, the observer receives what the reply contains,
//! and no session is lost.

use crate::test_session;
use bcc_lang::message::ToMessage;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::{ModelReply, SkippedModel};
use bcc_llm::model::request::{ModelRequest, Task};
use bcc_llm::providers::anthropic::MESSAGES;
use bcc_llm::providers::http::caller::Caller;
use bcc_llm::providers::http::config::ServerConfig;
use bcc_llm::providers::openai::CHAT_COMPLETIONS;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::Value;

use crate::faulty::{Answer, FaultyModelServer, Good, PROTOCOLS, Protocol, http, streamed, whole};

const TEXT: &str = "您好，😀 \"hi\"\n";

/// For tests that expect no timeout: long enough for a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// For tests that expect the timeout.
const SHORT: Duration = Duration::from_millis(50);

fn provider(protocol: Protocol, server: &FaultyModelServer, limit: Duration, max_attempts: u32) -> Arc<dyn Provider> {
    let config = ServerConfig {
        timeout: LONG,
        first_token_timeout: limit,
        idle_timeout: limit,
        max_attempts,
        first_backoff: Duration::from_millis(1),
        ..ServerConfig::new(format!("http://{}/v1", server.host), "m")
    };
    match protocol {
        Protocol::Chat => Arc::new(Caller::new(&CHAT_COMPLETIONS, config).unwrap()),
        Protocol::Messages => Arc::new(Caller::new(&MESSAGES, config).unwrap()),
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![ChatMessage { role: Role::User, content: "你好".into() }],
        schema: None,
        temperature: None,
        max_tokens: None,
        task: Task {
            kind: "ai_ask".into(),
            action_id: "a".into(),
            path: "a".into(),
            round: 1,
            opening: true,
            ..Task::default()
        },
    }
}

#[derive(Default)]
struct CapturedDeltas(String);

impl LiveObserver for CapturedDeltas {
    fn text(&mut self, piece: &str) {
        assert!(!piece.is_empty());
        self.0.push_str(piece);
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

type Outcome = (Result<String, &'static str>, u32);

async fn ask(provider: &Arc<dyn Provider>, server: &FaultyModelServer, answers: Vec<Answer>) -> Outcome {
    server.answers(answers);
    let mut captured = CapturedDeltas::default();
    let outcome = match provider.complete(&request(), &mut captured).await {
        Ok(reply) => {
            assert_eq!(captured.0, reply.text, "what was heard is not what came");
            (Ok(reply.text), reply.attempts)
        }
        Err(error) => (Err(error.kind()), error.attempts()),
    };
    assert_eq!(server.requests(), outcome.1 as usize, "{outcome:?}");
    outcome
}

fn good(attempts: u32) -> Outcome {
    (Ok(TEXT.to_owned()), attempts)
}

fn samples(protocol: Protocol) -> [Good; 2] {
    [streamed(protocol, TEXT), whole(protocol, TEXT)]
}

/// Corrupts each good answer at each byte, and lets the next attempt succeed.
async fn at_every_byte(
    corrupt: impl Fn(&Good, usize) -> Option<Vec<u8>>,
    expected: impl Fn(&Good, usize, &Outcome) -> bool,
) {
    for protocol in PROTOCOLS {
        let server = FaultyModelServer::start().await;
        let provider = provider(protocol, &server, LONG, 4);
        for sample in samples(protocol) {
            let mut count = 0;
            for at in 0..=sample.raw.len() {
                let Some(bytes) = corrupt(&sample, at) else { continue };
                let next = Answer::Bytes(sample.raw.clone());
                let outcome = ask(&provider, &server, vec![Answer::Bytes(bytes), next]).await;
                assert!(expected(&sample, at, &outcome), "{protocol:?} {} at {at}: {outcome:?}", sample.streamed);
                count += 1;
            }
            assert!(count > 10, "{count}");
        }
    }
}

#[tokio::test]
async fn an_answer_cut_at_any_byte_is_requested_again() {
    let cut = |sample: &Good, at: usize| Some(sample.raw[..at].to_vec());
    at_every_byte(cut, |sample, at, outcome| {
        // Only the blank line after the last event that counts may be missing.
        let slack = if sample.streamed { 2 } else { 0 };
        *outcome == good(if at + slack >= sample.finished { 1 } else { 2 })
    })
    .await;
}

#[tokio::test]
async fn garbage_at_any_byte_never_passes_for_a_reply() {
    let garbage = |sample: &Good, at: usize| Some([&sample.raw[..at], b"\xFF\x00", &sample.raw[at..]].concat());
    at_every_byte(garbage, |sample, at, outcome| {
        if at < sample.body || at >= sample.known {
            let complete = if sample.streamed { at >= sample.finished } else { at == sample.raw.len() };
            *outcome == good(if complete { 1 } else { 2 })
        } else {
            // What does not resemble a reply comes from no model server, and is not requested again.
            *outcome == (Err("protocol"), 1) || *outcome == good(2)
        }
    })
    .await;
}

#[tokio::test]
async fn half_a_character_never_passes_for_a_reply() {
    let half = |sample: &Good, at: usize| {
        let mut bytes = sample.raw.clone();
        (bytes.get(at).is_some_and(|byte| *byte >= 0x80)).then(|| {
            bytes.remove(at);
            bytes
        })
    };
    at_every_byte(half, |_, _, outcome| *outcome == good(2)).await;
}

#[tokio::test]
async fn error_answers_cut_at_any_byte_count_as_their_status_or_as_no_answer() {
    let error = r#"{"error": {"message": "m", "type": "t"}}"#;
    // The answer, and the number of attempts once its head has arrived.
    let table = [
        (http(429, "retry-after: 0\r\n", error), 2),
        (http(429, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n", error), 2),
        (http(503, "content-type: application/json\r\n", error), 2),
        (http(302, "location: /v1/elsewhere\r\n", ""), 1),
        (http(401, "", error), 1),
    ];
    for protocol in PROTOCOLS {
        let server = FaultyModelServer::start().await;
        let provider = provider(protocol, &server, LONG, 4);
        let next = Answer::Bytes(streamed(protocol, TEXT).raw);
        for (raw, attempts) in &table {
            let body = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
            for at in 0..=raw.len() {
                let outcome = ask(&provider, &server, vec![Answer::Bytes(raw[..at].to_vec()), next.clone()]).await;
                let expected = if at >= body && *attempts == 1 { (Err("http"), 1) } else { good(2) };
                assert_eq!(outcome, expected, "{protocol:?} {} at {at}", String::from_utf8_lossy(&raw[..15]));
            }
        }
    }
}

#[tokio::test]
async fn each_lasting_failure_has_its_kind_and_its_number_of_attempts() {
    for protocol in PROTOCOLS {
        let server = FaultyModelServer::start().await;
        let provider = provider(protocol, &server, LONG, 4);
        let stream = streamed(protocol, TEXT);
        let head = &stream.raw[..stream.body];
        let with = |body: &[u8]| [head, body].concat();
        let typed = |kind: &str| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            [head.as_bytes(), &stream.raw[stream.body..]].concat()
        };
        let middle = (stream.known + stream.finished) / 2;
        let garbled = [&stream.raw[..stream.known], b"data: {\"\xE6\x82\"}\n\n"].concat();
        let table: [(&str, Answer, Result<String, &str>, u32); 16] = [
            ("nothing", Answer::Bytes(Vec::new()), Err("unreachable"), 4),
            ("half a head", Answer::Bytes(stream.raw[..20].to_vec()), Err("unreachable"), 4),
            ("no HTTP", Answer::Bytes(b"SSH-2.0-x\r\n".to_vec()), Err("unreachable"), 4),
            ("an empty stream", Answer::Bytes(head.to_vec()), Err("cut_off"), 4),
            ("cut", Answer::Bytes(stream.raw[..middle].to_vec()), Err("cut_off"), 4),
            ("garbled", Answer::Bytes(garbled), Err("garbled"), 4),
            ("429", Answer::Bytes(http(429, "retry-after: 0\r\n", "")), Err("http"), 4),
            ("500", Answer::Bytes(http(500, "", "<html>")), Err("http"), 4),
            ("429 for an hour", Answer::Bytes(http(429, "retry-after: 3600\r\n", "")), Err("http"), 1),
            ("redirect", Answer::Bytes(http(307, "location: /v1/x\r\n", "")), Err("http"), 1),
            ("a web page", Answer::Bytes(http(200, "content-type: text/html\r\n", "<html>")), Err("protocol"), 1),
            ("something else", Answer::Bytes(with(b"data: hello\n\n")), Err("protocol"), 1),
            ("oversized", Answer::Flood(head.to_vec(), vec![b':'; 60_000]), Err("too_large"), 1),
            ("another type", Answer::Bytes(typed("text/html")), Ok(TEXT.to_owned()), 1),
            ("a wrong type", Answer::Bytes(typed("application/json")), Ok(TEXT.to_owned()), 1),
            ("a slow drip", Answer::Drip(stream.raw.clone()), Ok(TEXT.to_owned()), 1),
        ];
        for (name, answer, expected, attempts) in table {
            assert_eq!(ask(&provider, &server, vec![answer]).await, (expected, attempts), "{protocol:?} {name}");
        }
        let body = String::from_utf8(stream.raw[stream.body..].to_vec()).unwrap();
        let twice: String = body.split_inclusive("\n\n").map(|event| event.repeat(2)).collect();
        let (text, attempts) = ask(&provider, &server, vec![Answer::Bytes(with(twice.as_bytes()))]).await;
        assert_eq!((text.unwrap().chars().count(), attempts), (2 * TEXT.chars().count(), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn silence_in_any_part_of_an_answer_times_out_and_is_requested_again() {
    for protocol in PROTOCOLS {
        let server = FaultyModelServer::start().await;
        let provider = provider(protocol, &server, SHORT, 2);
        for sample in samples(protocol) {
            let next = Answer::Bytes(sample.raw.clone());
            for at in [0, 20, sample.body, sample.known, (sample.known + sample.finished) / 2] {
                let outcome =
                    ask(&provider, &server, vec![Answer::Stall(sample.raw[..at].to_vec()), next.clone()]).await;
                assert_eq!(outcome, good(2), "{protocol:?} at {at}");
            }
            let lasting = ask(&provider, &server, vec![Answer::Stall(sample.raw[..sample.known].to_vec())]).await;
            assert_eq!(lasting, (Err("timeout"), 2), "{protocol:?}");
        }
        let streamed = streamed(protocol, TEXT);
        let finished = Answer::Stall(streamed.raw[..streamed.finished].to_vec());
        assert_eq!(ask(&provider, &server, vec![finished]).await, good(1), "{protocol:?}");
    }
}

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: 一, max_rounds: 2, monitor: 'off' } }
            - { action_type: ai_say, action_id: second, config: { content: 二, max_rounds: 1, monitor: 'off' } }
";

fn messages_of(journal: &[Value], role: &str) -> Vec<String> {
    let messages = journal.iter().filter(|event| event["type"] == "message" && event["role"] == role);
    messages.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs the session to its end and answers every question.
async fn talk(session: &mut bcc_runtime::run::session::Session) -> SessionPause {
    loop {
        match session.advance().await.unwrap() {
            SessionPause::Waiting => assert_eq!(session.answer("嗯", None).await.unwrap(), TakenAnswer::Yes),
            pause => return pause,
        }
    }
}

#[tokio::test]
async fn no_failure_loses_a_session() {
    let program = test_session::program(SCRIPT);
    for protocol in PROTOCOLS {
        let server = FaultyModelServer::start().await;
        let models: Arc<dyn ModelProviders> =
            test_session::FixedModels::without_monitors(Some(provider(protocol, &server, SHORT * 4, 2)));
        let exits = test_session::reply("ai_ask", "好", true, "continue_needed");
        let continues = test_session::reply("ai_ask", "好", false, "continue_needed");
        let good = |text: &str| streamed(protocol, text);
        let at = |share: usize| good(&exits).raw[..good(&exits).raw.len() * share / 5].to_vec();
        let failures = [
            ("nothing", Answer::Bytes(Vec::new())),
            ("cut in the head", Answer::Bytes(good(&exits).raw[..20].to_vec())),
            ("cut early", Answer::Bytes(at(1))),
            ("cut late", Answer::Bytes(at(3))),
            ("silent", Answer::Stall(at(2))),
            ("garbled", Answer::Bytes([&at(2)[..], b"\xFF\x00\n\n"].concat())),
            ("busy", Answer::Bytes(http(503, "", "busy"))),
            ("limited", Answer::Bytes(http(429, "retry-after: 0\r\n", ""))),
            ("redirected", Answer::Bytes(http(302, "location: /x\r\n", ""))),
            ("not allowed", Answer::Bytes(http(401, "", "no"))),
            ("endless", Answer::Flood(at(1), vec![b':'; 60_000])),
            ("another server", Answer::Bytes(http(200, "content-type: text/html\r\n", "<html>"))),
        ];
        let answers = [&continues, &exits, &exits].map(|text| Answer::Bytes(good(text).raw));
        server.answers(answers.clone());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let mut session = test_session::start_conversation(&program, Arc::clone(&store), Arc::clone(&models)).await;
        assert_eq!(talk(&mut session).await, SessionPause::Completed);
        drop(session);
        let uninterrupted = test_session::journal(store.as_ref()).await;
        let calls = server.requests();
        for (name, failure) in failures {
            // The failure is injected into each call of the session in turn.
            for call in 0..calls {
                let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
                let before = answers.iter().take(call).cloned();
                server.answers(before.chain([failure.clone()]));
                let mut session =
                    test_session::start_conversation(&program, Arc::clone(&store), Arc::clone(&models)).await;
                assert_eq!(talk(&mut session).await, SessionPause::Stopped, "{protocol:?} {name} in call {call}");
                drop(session);
                let journal = test_session::journal(store.as_ref()).await;
                let error = journal.iter().find(|event| event["type"] == "error").unwrap();
                assert_eq!(error["code"], "model-failed", "{protocol:?} {name}");

                server.answers(answers.iter().skip(call).cloned());
                let mut session = test_session::resume(&program, Arc::clone(&store), Arc::clone(&models)).await;
                assert_eq!(talk(&mut session).await, SessionPause::Completed, "{protocol:?} {name} in call {call}");
                drop(session);
                let journal = test_session::journal(store.as_ref()).await;
                for role in ["ai", "user"] {
                    let messages = messages_of(&journal, role);
                    assert_eq!(messages, messages_of(&uninterrupted, role), "{protocol:?} {name} in call {call}");
                }
            }
        }
    }
}

/// Returns these results in order; its policy allows one further request for each reply.
struct ScriptedModel(Mutex<VecDeque<Result<ModelReply, ModelError>>>);

#[async_trait]
impl Provider for ScriptedModel {
    fn name(&self) -> &str {
        "told"
    }

    fn reply_policy(&self) -> ReplyPolicy {
        ReplyPolicy { repair: false, reask: 1 }
    }

    async fn complete(&self, _request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let next = self.0.lock().unwrap().pop_front().unwrap();
        if let Ok(reply) = &next {
            live.text(&reply.text);
        }
        next
    }
}

fn http_error(status: u16, message: &str) -> ModelError {
    ModelError::Http { host: "h".into(), status, message: message.into(), retry_after: None, attempts: 1 }
}

/// How a session with one action ends if its calls have these results, and the journal.
async fn run_with_results(results: Vec<Result<ModelReply, ModelError>>) -> (SessionPause, Vec<Value>) {
    let script = "
session:
  session_id: s
  declare: [{ var: phone, type: string, sensitive: true }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions: [{ action_type: ai_ask, action_id: ask, config: { content: 问, output: [{ get: phone }] } }]
";
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let models = test_session::FixedModels::without_monitors(Some(Arc::new(ScriptedModel(Mutex::new(results.into())))));
    let mut session =
        test_session::start_conversation(&test_session::program(script), Arc::clone(&store), models).await;
    let pause = talk(&mut session).await;
    drop(session);
    (pause, test_session::journal(store.as_ref()).await)
}

fn phone(exit: bool, number: Option<&str>) -> ModelReply {
    let mut reply: Value = serde_json::from_str(&test_session::reply("ai_ask", "好", exit, "continue_needed")).unwrap();
    reply["phone"] = number.into();
    ModelReply { text: reply.to_string(), ..ModelReply::default() }
}

#[tokio::test]
async fn a_sensitive_value_that_a_server_repeats_is_in_no_event() {
    let message = "content filter: 13800001111";
    let skipped = SkippedModel { model: "first".into(), error: http_error(403, message).to_message(), attempts: 1 };
    let fallback = ModelReply { skipped_models: vec![skipped], ..phone(true, Some("13800001111")) };
    let (pause, journal) = run_with_results(vec![Ok(phone(false, None)), Ok(fallback)]).await;
    assert_eq!(pause, SessionPause::Completed);
    let warned = journal.iter().find(|event| event["code"] == "model-fallback").unwrap();
    assert!(warned["message"].as_str().unwrap().contains("content filter: ***"), "{warned}");
    let call = journal.iter().find(|event| !event["passed_over"].is_null()).unwrap();
    assert!(call["passed_over"][0]["error"].as_str().unwrap().contains("content filter: ***"), "{call}");
    assert!(!Value::from(journal).to_string().contains("13800001111"));
}

#[tokio::test]
async fn a_refusal_is_asked_again_once_and_a_second_one_in_a_row_stops_the_session() {
    let refused = || {
        Ok(ModelReply {
            text: "I cannot help with that.".into(),
            refused: true,
            finish_reason: Some("content_filter".into()),
            ..ModelReply::default()
        })
    };
    let opening = || Ok(phone(false, None));
    let (pause, journal) = run_with_results(vec![opening(), refused(), Ok(phone(true, Some("5")))]).await;
    assert_eq!(pause, SessionPause::Completed);
    let calls: Vec<_> = journal.iter().filter(|event| event["type"] == "model_call").collect();
    assert_eq!(calls.len(), 3);
    assert_eq!((&calls[1]["finish_reason"], &calls[1]["refusal"]), (&"content_filter".into(), &true.into()));
    assert!(calls[2]["refusal"].is_null());

    let (pause, journal) = run_with_results(vec![opening(), refused(), refused()]).await;
    assert_eq!(pause, SessionPause::Stopped);
    let apologies = journal.iter().filter(|event| event["type"] == "message").count();
    assert_eq!(apologies, 2, "the question and the answer, but no apology: {journal:#?}");
    let stopped = Value::from(journal).to_string();
    assert!(stopped.contains("refused to answer") && stopped.contains("twice in a row"), "{stopped}");
}

#[tokio::test]
async fn a_person_in_danger_sees_the_hotlines_even_if_the_model_gives_no_second_reply() {
    let held_back = |crisis: bool| {
        let mut reply: Value = serde_json::from_str(&phone(true, None).text).unwrap();
        reply["safety_risk"] = serde_json::json!({ "detected": true, "reason": "坏" });
        reply["metadata"]["crisis_signal"] = crisis.into();
        Ok(ModelReply { text: reply.to_string(), ..ModelReply::default() })
    };
    let refused = Ok(ModelReply { refused: true, ..ModelReply::default() });
    let unreadable = Ok(ModelReply { text: "不会".into(), ..ModelReply::default() });
    let unreachable = ModelError::Unreachable { host: "h".into(), reason: "r".into(), attempts: 4 };
    let again = [Err(http_error(503, "busy")), Err(unreachable), refused, unreadable, held_back(false)];
    for (crisis, text) in [(true, "Your safety comes first"), (false, "I would rather not answer")] {
        for second in again.clone() {
            let results = vec![Ok(phone(false, None)), held_back(crisis), second.clone(), Ok(phone(true, None))];
            let (pause, journal) = run_with_results(results).await;
            assert_eq!(pause, SessionPause::Completed, "{second:?}");
            let said = messages_of(&journal, "ai");
            assert!(said.len() == 3 && said[1].contains(text), "{second:?}: {said:?}");
            let judged = journal.iter().filter(|event| event["type"] == "outcome").nth(1).unwrap();
            assert_eq!(judged["metadata"]["crisis_signal"], crisis, "{second:?}: {judged}");
        }
    }
}

#[tokio::test]
async fn if_only_the_further_request_fails_the_first_reply_counts() {
    let half = || {
        let mut reply: Value = serde_json::from_str(&phone(true, Some("5")).text).unwrap();
        reply.as_object_mut().unwrap().remove("metrics");
        ModelReply { text: reply.to_string(), ..ModelReply::default() }
    };
    let opening = || Ok(phone(false, None));
    let (pause, journal) = run_with_results(vec![opening(), Ok(half()), Err(http_error(401, "no"))]).await;
    assert_eq!(pause, SessionPause::Completed);
    let calls: Vec<_> = journal.iter().filter(|event| event["type"] == "model_call").collect();
    assert_eq!(calls.len(), 3);
    assert!(calls[2]["error"].as_str().unwrap().contains("401"), "{}", calls[2]);
    assert_eq!(journal.iter().filter(|event| event["type"] == "variable_set").count(), 1);
    // The part that was shown was discarded, so the message has another id.
    let ids = |kind: &str| -> Vec<&Value> {
        journal.iter().filter(|event| event["type"] == kind).map(|event| &event["message_id"]).collect()
    };
    assert!(ids("message").iter().all(|id| !ids("message_discarded").contains(id)));
    // There is no reply if nothing was readable, or if the error came from the recorded replies.
    let nothing = ModelReply { text: "不会".into(), ..ModelReply::default() };
    let written = ModelError::NoReply { key: "ask".into(), help: "no more".into() };
    for results in [vec![opening(), Ok(nothing), Err(http_error(401, "no"))], vec![opening(), Ok(half()), Err(written)]]
    {
        assert_eq!(run_with_results(results).await.0, SessionPause::Stopped);
    }
}
