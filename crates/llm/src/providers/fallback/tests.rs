//! Tests of chains of fake models.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::model::error::TimeoutPhase;
use crate::providers::http::fake::CapturedDeltas;
use bcc_lang::message::ToMessage;

/// Streams its name and returns `result`.
struct FakeModel {
    name: &'static str,
    result: Result<&'static str, ModelError>,
    /// The purpose that it does not support.
    unsupported: Option<Purpose>,
    calls: Mutex<u32>,
}

impl FakeModel {
    fn new(name: &'static str, result: Result<&'static str, ModelError>) -> Arc<Self> {
        Arc::new(Self { name, result, unsupported: None, calls: Mutex::new(0) })
    }

    fn calls(&self) -> u32 {
        *self.calls.lock().unwrap()
    }
}

#[async_trait]
impl Provider for FakeModel {
    fn name(&self) -> &str {
        self.name
    }

    fn answers(&self, purpose: Purpose, _action_id: &str) -> bool {
        self.unsupported != Some(purpose)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        ReplyPolicy { repair: self.name == "first", reask: 0 }
    }

    async fn complete(&self, _request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        *self.calls.lock().unwrap() += 1;
        live.text(self.name);
        let text = self.result.clone()?.to_owned();
        Ok(ModelReply { text, model: self.name.into(), attempts: 2, ..ModelReply::default() })
    }
}

fn http(status: u16, attempts: u32) -> ModelError {
    ModelError::Http { host: "h".into(), status, message: String::new(), retry_after: None, attempts }
}

async fn ask(chain: &[&Arc<FakeModel>]) -> (Result<ModelReply, ModelError>, String) {
    let others = chain.iter().skip(1).map(|model| Arc::clone(model) as Arc<dyn Provider>).collect();
    let chain = Fallback::new(Arc::clone(chain[0]) as Arc<dyn Provider>, others);
    let mut captured = CapturedDeltas::default();
    let result = chain.complete(&ModelRequest::default(), &mut captured).await;
    (result, captured.0.concat().replace("<restart>", "|"))
}

#[tokio::test]
async fn only_the_first_model_is_called_if_it_answers() {
    let (first, second) = (FakeModel::new("first", Ok("hello")), FakeModel::new("second", Ok("no")));
    let (reply, captured) = ask(&[&first, &second]).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts, reply.answered_by), ("hello", 2, None));
    assert!(reply.skipped_models.is_empty());
    assert_eq!((captured.as_str(), second.calls()), ("first", 0));
}

#[tokio::test]
async fn every_error_of_a_sent_request_tries_the_next_model() {
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
        [TimeoutPhase::Total, TimeoutPhase::FirstToken, TimeoutPhase::Idle].map(|phase| ModelError::Timeout {
            host: host.clone(),
            phase,
            after: Duration::from_secs(1),
            attempts,
        }),
    );
    for error in errors {
        let (first, second) = (FakeModel::new("first", Err(error.clone())), FakeModel::new("second", Ok("hello")));
        let (reply, captured) = ask(&[&first, &second]).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.attempts), ("hello", 5), "{error}");
        assert_eq!(reply.answered_by.as_deref(), Some("second"), "{error}");
        let skipped = SkippedModel { model: "first".into(), error: error.to_message(), attempts: 3 };
        assert_eq!(reply.skipped_models, [skipped]);
        // The text of the first model is discarded before that of the second.
        assert_eq!(captured, "first|second", "{error}");
    }
}

#[tokio::test]
async fn other_errors_are_returned_immediately() {
    for error in [
        ModelError::Config { message: "wrong".into() },
        ModelError::NoReply { key: "ask".into(), help: "write one".into() },
    ] {
        let (first, second) = (FakeModel::new("first", Err(error.clone())), FakeModel::new("second", Ok("no")));
        assert_eq!(ask(&[&first, &second]).await.0.unwrap_err(), error);
        assert_eq!(second.calls(), 0);
    }
}

#[tokio::test]
async fn other_errors_end_the_chain_at_any_position() {
    let mistake = ModelError::NoReply { key: "ask".into(), help: "write one".into() };
    let chain = [
        FakeModel::new("first", Err(http(503, 4))),
        FakeModel::new("second", Err(mistake)),
        FakeModel::new("third", Ok("no")),
    ];
    let error = ask(&chain.each_ref()).await.0.unwrap_err();
    assert!(error.to_string().contains("second: no reply for ask"), "{error}");
    assert_eq!(chain[2].calls(), 0);
}

#[tokio::test]
async fn if_all_fail_the_error_lists_each_model_and_counts_all_attempts() {
    let chain = [
        FakeModel::new("first", Err(http(503, 4))),
        FakeModel::new("second", Err(http(401, 1))),
        FakeModel::new("third", Err(ModelError::CutOff { host: "h".into(), attempts: 2 })),
    ];
    let (error, captured) = ask(&chain.each_ref()).await;
    let error = error.unwrap_err();
    assert_eq!(error.attempts(), 7);
    let message = error.to_string();
    assert!(message.starts_with("none of the 3 models answered: first: "), "{message}");
    for part in ["returned 503", "second: the model at h returned 401", "third: the model at h closed"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(captured, "first|second|third");
}

#[tokio::test]
async fn a_model_that_does_not_support_the_purpose_is_not_called() {
    let first = FakeModel::new("first", Err(http(503, 1)));
    let unsupported_model = Arc::new(FakeModel {
        name: "silent",
        result: Ok("no"),
        unsupported: Some(Purpose::Action),
        calls: Mutex::new(0),
    });
    let last = FakeModel::new("last", Ok("hello"));
    let (reply, _) = ask(&[&first, &unsupported_model, &last]).await;
    assert_eq!(reply.unwrap().answered_by.as_deref(), Some("last"));
    assert_eq!(unsupported_model.calls(), 0);
    // Without another model, the error is that of the first one.
    assert_eq!(ask(&[&first, &unsupported_model]).await.0.unwrap_err(), http(503, 1));
}

#[tokio::test]
async fn a_chain_has_the_name_of_its_first_model() {
    let chain = Fallback::new(FakeModel::new("first", Ok("a")), vec![FakeModel::new("second", Ok("b"))]);
    assert_eq!(chain.name(), "first");
    assert!(chain.reply_policy().repair);
}
