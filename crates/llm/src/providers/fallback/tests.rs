//! Chains of made-up models, each of which does what it is told.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::model::error::TimeoutPhase;
use crate::providers::http::fake::CapturedDeltas;
use bcc_lang::message::ToMessage;

/// Says a piece, and then ends as it is told.
struct Made {
    name: &'static str,
    ends: Result<&'static str, ModelError>,
    /// Purposes that it has no answer for.
    silent_for: Option<Purpose>,
    asked: Mutex<u32>,
}

impl Made {
    fn new(name: &'static str, ends: Result<&'static str, ModelError>) -> Arc<Self> {
        Arc::new(Self { name, ends, silent_for: None, asked: Mutex::new(0) })
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }
}

#[async_trait]
impl Provider for Made {
    fn name(&self) -> &str {
        self.name
    }

    fn answers(&self, purpose: Purpose, _action_id: &str) -> bool {
        self.silent_for != Some(purpose)
    }

    fn manners(&self) -> ReplyPolicy {
        ReplyPolicy { repair: self.name == "first", reask: 0 }
    }

    async fn complete(&self, _request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        *self.asked.lock().unwrap() += 1;
        live.text(self.name);
        let text = self.ends.clone()?.to_owned();
        Ok(ModelReply { text, model: self.name.into(), attempts: 2, ..ModelReply::default() })
    }
}

fn http(status: u16, attempts: u32) -> ModelError {
    ModelError::Http { host: "h".into(), status, message: String::new(), retry_after: None, attempts }
}

async fn ask(chain: &[&Arc<Made>]) -> (Result<ModelReply, ModelError>, String) {
    let others = chain.iter().skip(1).map(|made| Arc::clone(made) as Arc<dyn Provider>).collect();
    let chain = Fallback::new(Arc::clone(chain[0]) as Arc<dyn Provider>, others);
    let mut heard = CapturedDeltas::default();
    let result = chain.complete(&ModelRequest::default(), &mut heard).await;
    (result, heard.0.concat().replace("<restart>", "|"))
}

#[tokio::test]
async fn a_first_model_that_answers_is_the_only_one_that_is_asked() {
    let (first, second) = (Made::new("first", Ok("hello")), Made::new("second", Ok("no")));
    let (reply, heard) = ask(&[&first, &second]).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts, reply.answered_by), ("hello", 2, None));
    assert!(reply.passed_over.is_empty());
    assert_eq!((heard.as_str(), second.asked()), ("first", 0));
}

#[tokio::test]
async fn every_error_of_something_that_was_sent_passes_the_call_on() {
    let (host, attempts) = ("h".to_owned(), 3);
    let mut errors = vec![
        ModelError::Unreachable { host: host.clone(), reason: "refused".into(), attempts },
        ModelError::CutOff { host: host.clone(), attempts },
        ModelError::Garbled { host: host.clone(), attempts },
        ModelError::TooLarge { host: host.clone(), limit: 1, attempts },
        ModelError::Protocol { host: host.clone(), message: "not JSON".into(), attempts },
    ];
    errors.extend([400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 504, 529].map(|status| http(status, 3)));
    errors.extend(
        [TimeoutPhase::Total, TimeoutPhase::FirstToken, TimeoutPhase::Idle].map(|what| ModelError::Timeout {
            host: host.clone(),
            what,
            after: Duration::from_secs(1),
            attempts,
        }),
    );
    for error in errors {
        let (first, second) = (Made::new("first", Err(error.clone())), Made::new("second", Ok("hello")));
        let (reply, heard) = ask(&[&first, &second]).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.attempts), ("hello", 5), "{error}");
        assert_eq!(reply.answered_by.as_deref(), Some("second"), "{error}");
        let passed = PassedOver { model: "first".into(), error: error.to_message(), attempts: 3 };
        assert_eq!(reply.passed_over, [passed]);
        // What was heard of the first is taken back before the second speaks.
        assert_eq!(heard, "first|second", "{error}");
    }
}

#[tokio::test]
async fn a_mistake_that_no_other_model_should_cover_is_told_at_once() {
    for error in [
        ModelError::Config { message: "wrong".into() },
        ModelError::NoReply { key: "ask".into(), help: "write one".into() },
    ] {
        let (first, second) = (Made::new("first", Err(error.clone())), Made::new("second", Ok("no")));
        assert_eq!(ask(&[&first, &second]).await.0.unwrap_err(), error);
        assert_eq!(second.asked(), 0);
    }
}

#[tokio::test]
async fn such_a_mistake_ends_the_chain_wherever_it_stands() {
    let mistake = ModelError::NoReply { key: "ask".into(), help: "write one".into() };
    let chain =
        [Made::new("first", Err(http(503, 4))), Made::new("second", Err(mistake)), Made::new("third", Ok("no"))];
    let error = ask(&chain.each_ref()).await.0.unwrap_err();
    assert!(error.to_string().contains("second: no reply for ask"), "{error}");
    assert_eq!(chain[2].asked(), 0);
}

#[tokio::test]
async fn when_none_answers_the_error_names_each_with_its_reason_and_all_attempts_count() {
    let chain = [
        Made::new("first", Err(http(503, 4))),
        Made::new("second", Err(http(401, 1))),
        Made::new("third", Err(ModelError::CutOff { host: "h".into(), attempts: 2 })),
    ];
    let (error, heard) = ask(&chain.each_ref()).await;
    let error = error.unwrap_err();
    assert_eq!(error.attempts(), 7);
    let message = error.to_string();
    assert!(message.starts_with("none of the 3 models answered: first: "), "{message}");
    for part in ["returned 503", "second: the model at h returned 401", "third: the model at h closed"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(heard, "first|second|third");
}

#[tokio::test]
async fn a_model_that_has_no_answer_for_this_purpose_is_not_asked() {
    let first = Made::new("first", Err(http(503, 1)));
    let silent =
        Arc::new(Made { name: "silent", ends: Ok("no"), silent_for: Some(Purpose::Action), asked: Mutex::new(0) });
    let last = Made::new("last", Ok("hello"));
    let (reply, _) = ask(&[&first, &silent, &last]).await;
    assert_eq!(reply.unwrap().answered_by.as_deref(), Some("last"));
    assert_eq!(silent.asked(), 0);
    // Where nobody else is left, the error is the first one's own.
    assert_eq!(ask(&[&first, &silent]).await.0.unwrap_err(), http(503, 1));
}

#[tokio::test]
async fn a_chain_is_known_by_its_first_model() {
    let chain = Fallback::new(Made::new("first", Ok("a")), vec![Made::new("second", Ok("b"))]);
    assert_eq!(chain.name(), "first");
    assert!(chain.manners().repair);
}
