//! Model calls in the background of the conversation, by monitors and planners. They work like those of a turn.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::json;

use crate::program::clock::Clock;
use crate::program::event::ModelCall;
use crate::program::messages::{debug_info, log_unreadable, read_and_note};
use crate::program::program::Program;
use crate::program::reask::{ask_again, problems_note, reply_problems};
use crate::program::recorder::RecordedExchange;
use bcc_lang::template::language::PromptLanguage;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{NoLiveOutput, Provider};
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_llm::providers::limit::Deadline;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

pub(crate) struct BackgroundCall<'a> {
    pub provider: &'a dyn Provider,
    /// The first request.
    pub request: ModelRequest,
    pub shape: &'a ReplyShape,
    /// The id of the first call; further calls append their number.
    pub call_id: String,
    /// The end of the time for all calls together.
    pub deadline: Deadline,
    pub clock: &'a dyn Clock,
    pub program: &'a Program,
    /// The language of the prompt.
    pub language: PromptLanguage,
    pub recording: bool,
}

#[derive(Debug, Default)]
pub(crate) struct BackgroundReply {
    pub calls: Vec<ModelCall>,
    /// The reply; if there are several, the last readable one. `None` if a call failed before there was any.
    pub reading: Option<Result<Reply, UnreadableReply>>,
    /// The text of that reply.
    pub text: String,
    pub error: Option<BackgroundError>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackgroundError {
    /// The kind for logs and recordings, as in [`ModelError::summary`]; it contains no text of a person or a model.
    pub kind: String,
    /// A message for events, which are masked: it may contain what a model's server returned, and so what was sent to it.
    pub message: Message,
}

impl From<&ModelError> for BackgroundError {
    fn from(error: &ModelError) -> Self {
        Self { kind: error.summary(), message: error.to_message() }
    }
}

impl BackgroundReply {
    /// The result of one call for which no model is available.
    pub(crate) fn failed(call_id: String, purpose: Purpose, cause: BackgroundError) -> Self {
        let (purpose, error) = (purpose.name(), Some(cause.message.clone()));
        let call = ModelCall { call_id, purpose, error, coercions: json!([]), ..ModelCall::default() };
        Self { calls: vec![call], error: Some(cause), ..Self::default() }
    }
}

impl BackgroundCall<'_> {
    /// Calls the model until the reply can be used, as often as its reply policy allows. If a later call fails, an earlier readable
    /// reply is kept.
    pub(crate) async fn ask(self) -> BackgroundReply {
        let Self { provider, mut request, shape, call_id, deadline, clock, program, language, recording } = self;
        let policy = provider.reply_policy_for(&request.task);
        let mut result = BackgroundReply::default();
        loop {
            let reask = u32::try_from(result.calls.len()).unwrap_or(u32::MAX);
            let id = if reask == 0 { call_id.clone() } else { format!("{call_id}.{reask}") };
            let purpose = request.task.purpose.name();
            let mut call = ModelCall {
                call_id: id,
                purpose,
                reask,
                coercions: json!([]),
                model: provider.name().to_owned(),
                ..ModelCall::default()
            };
            let started = clock.elapsed_ms();
            let mut silent = NoLiveOutput;
            let response = deadline.within(provider.complete(&request, &mut silent)).await;
            call.ms = clock.elapsed_ms().saturating_sub(started);
            let recorded = |text: Option<&str>, error: &str| {
                let went_on = text.is_none() && matches!(result.reading, Some(Ok(_)));
                let (text, messages) = (text.map(str::to_owned), request.messages.clone());
                recording.then(|| {
                    let exchange = RecordedExchange::new(&request.task, messages, text, policy);
                    Arc::new(RecordedExchange { used_earlier_reply: went_on, error: error.to_owned(), ..exchange })
                })
            };
            let (error, attempts) = match response {
                Some(Ok(reply)) => {
                    let reading = read_and_note(&reply, shape, policy.repair, None, &mut call);
                    if reading.is_err() {
                        log_unreadable(&reply.text, program);
                    }
                    call.debug_info = debug_info(request.messages.clone(), &reply.text, &reading, &call);
                    call.exchange = recorded(Some(&reply.text), "");
                    result.calls.push(call);
                    let problems =
                        if reask < policy.reask { reply_problems(&reading, reply.cut_off, shape, &[]) } else { vec![] };
                    if reading.is_ok() || !matches!(result.reading, Some(Ok(_))) {
                        result.reading = Some(reading);
                        result.text.clone_from(&reply.text);
                    }
                    if problems.is_empty() {
                        return result;
                    }
                    ask_again(&mut request.messages, &reply.text, problems_note(&problems, language));
                    continue;
                }
                Some(Err(error)) => (BackgroundError::from(&error), error.attempts()),
                None => (
                    BackgroundError {
                        kind: "timeout".to_owned(),
                        message: msg!("nothing was received within {} s", deadline.limit().as_secs()),
                    },
                    1,
                ),
            };
            call.exchange = recorded(None, &error.kind);
            call.error = Some(error.message.clone());
            call.attempts = attempts;
            result.calls.push(call);
            result.error = Some(error);
            return result;
        }
    }
}
