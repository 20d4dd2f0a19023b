//! Calls of a model beside the conversation: those of monitors and planners. They are made and read like those of a turn.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::program::clock::Clock;
use crate::program::event::ModelCall;
use crate::program::messages::{debug_info, log_unreadable, read_and_note};
use crate::program::program::Program;
use crate::program::reask::{ask_again, faults, note_of_faults};
use crate::program::recorder::RecordedExchange;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{NoLiveOutput, Provider};
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_llm::providers::limit::within;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

pub struct BackgroundCall<'a> {
    pub provider: &'a dyn Provider,
    /// What is sent first.
    pub request: ModelRequest,
    pub shape: &'a ReplyShape,
    /// The id of the first call; those that ask again add their number.
    pub call_id: String,
    /// How long each call may take.
    pub limit: Duration,
    pub clock: &'a dyn Clock,
    pub program: &'a Program,
    pub recording: bool,
}

#[derive(Debug, Default)]
pub struct BackgroundReply {
    pub calls: Vec<ModelCall>,
    /// The reply: of several the last one that could be read. `None` when a call failed before there was any.
    pub reading: Option<Result<Reply, UnreadableReply>>,
    pub fault: Option<BackgroundError>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundError {
    /// What logs and recordings tell of it, as [`ModelError::in_short`] has it: nothing that anybody said stands in it.
    pub kind: String,
    /// A sentence for events, which are masked: it may hold what a model's server said, and so what it was sent.
    pub told: Message,
}

impl From<&ModelError> for BackgroundError {
    fn from(error: &ModelError) -> Self {
        Self { kind: error.in_short(), told: error.to_message() }
    }
}

impl BackgroundReply {
    /// One call, for which there is no model.
    pub fn failed(call_id: String, purpose: Purpose, fault: BackgroundError) -> Self {
        let (purpose, error) = (purpose.name(), Some(fault.told.clone()));
        let call = ModelCall { call_id, purpose, error, bent: json!([]), ..ModelCall::default() };
        Self { calls: vec![call], reading: None, fault: Some(fault) }
    }
}

impl BackgroundCall<'_> {
    /// Asks, and asks again as often as the model's manners allow, until the reply can be used. What fails then leaves what
    /// could be read before.
    pub async fn ask(self) -> BackgroundReply {
        let Self { provider, mut request, shape, call_id, limit, clock, program, recording } = self;
        let manners = provider.manners_of(&request.task);
        let mut asked = BackgroundReply::default();
        loop {
            let reask = u32::try_from(asked.calls.len()).unwrap_or(u32::MAX);
            let id = if reask == 0 { call_id.clone() } else { format!("{call_id}.{reask}") };
            let purpose = request.task.purpose.name();
            let mut call = ModelCall {
                call_id: id,
                purpose,
                reask,
                bent: json!([]),
                model: provider.name().to_owned(),
                ..ModelCall::default()
            };
            let began = clock.elapsed_ms();
            let mut silent = NoLiveOutput;
            let answered = within(limit, provider.complete(&request, &mut silent)).await;
            call.ms = clock.elapsed_ms().saturating_sub(began);
            let exchanged = |text: Option<&str>, fault: &str| {
                let went_on = text.is_none() && matches!(asked.reading, Some(Ok(_)));
                let (text, messages) = (text.map(str::to_owned), request.messages.clone());
                recording.then(|| {
                    let exchanged = RecordedExchange::new(&request.task, messages, text, manners);
                    Arc::new(RecordedExchange { went_on, fault: fault.to_owned(), ..exchanged })
                })
            };
            let (fault, attempts) = match answered {
                Some(Ok(reply)) => {
                    let reading = read_and_note(&reply, shape, manners.repair, &mut call);
                    if reading.is_err() {
                        log_unreadable(&reply.text, program);
                    }
                    call.debug_info = debug_info(request.messages.clone(), &reply.text, &reading, &call);
                    call.exchange = exchanged(Some(&reply.text), "");
                    asked.calls.push(call);
                    let wrong =
                        if reask < manners.reask { faults(&reading, reply.cut_off, shape, &[]) } else { vec![] };
                    if reading.is_ok() || !matches!(asked.reading, Some(Ok(_))) {
                        asked.reading = Some(reading);
                    }
                    if wrong.is_empty() {
                        return asked;
                    }
                    ask_again(&mut request.messages, &reply.text, note_of_faults(&wrong));
                    continue;
                }
                Some(Err(error)) => (BackgroundError::from(&error), error.attempts()),
                None => (
                    BackgroundError {
                        kind: "timeout".to_owned(),
                        told: msg!("nothing was received within {} s", limit.as_secs()),
                    },
                    1,
                ),
            };
            call.exchange = exchanged(None, &fault.kind);
            call.error = Some(fault.told.clone());
            call.attempts = attempts;
            asked.calls.push(call);
            asked.fault = Some(fault);
            return asked;
        }
    }
}
