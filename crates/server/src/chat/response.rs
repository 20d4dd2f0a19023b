//! Completions, whole and in pieces.

use bcc_engine::clock::now;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::reply::{TurnReply, parsed};
use crate::problem::Problem;

/// What stands between two messages of one reply.
pub(crate) const BETWEEN: &str = "\n\n";

/// The number of events that are read at a time.
const PAGE: usize = 256;

/// A whole reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Completion {
    pub(crate) id: String,
    /// `chat.completion`
    pub(crate) object: &'static str,
    /// Seconds since 1970.
    pub(crate) created: i64,
    pub(crate) model: String,
    pub(crate) choices: Vec<CompletionChoice>,
    pub(crate) usage: CompletionUsage,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletionChoice {
    pub(crate) index: u32,
    pub(crate) message: CompletionMessage,
    /// `stop`
    pub(crate) finish_reason: &'static str,
    /// Always null.
    pub(crate) logprobs: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletionMessage {
    /// `assistant`
    pub(crate) role: &'static str,
    pub(crate) content: String,
    /// Always null.
    pub(crate) refusal: Option<String>,
}

/// The tokens of all model calls of the turn; 0 for calls whose server does not tell it.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub(crate) struct CompletionUsage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) total_tokens: u64,
}

/// A piece of a streamed reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompletionChunk {
    pub(crate) id: String,
    /// `chat.completion.chunk`
    pub(crate) object: &'static str,
    pub(crate) created: i64,
    pub(crate) model: String,
    pub(crate) choices: Vec<ChunkChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<CompletionUsage>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChunkChoice {
    pub(crate) index: u32,
    pub(crate) delta: ChunkDelta,
    pub(crate) finish_reason: Option<&'static str>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ChunkDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
}

/// What all pieces of a reply have in common.
#[derive(Clone, Debug)]
pub(crate) struct CompletionHead {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: i64,
}

impl CompletionHead {
    pub(crate) fn new(session: &str, number: u64, model: &str) -> Self {
        Self { id: format!("chatcmpl-{session}-{number}"), model: model.to_owned(), created: now().as_second() }
    }

    pub(crate) fn completion(self, content: String, usage: CompletionUsage) -> Completion {
        let message = CompletionMessage { role: "assistant", content, refusal: None };
        let choice = CompletionChoice { index: 0, message, finish_reason: "stop", logprobs: None };
        let Self { id, model, created } = self;
        Completion { id, object: "chat.completion", created, model, choices: vec![choice], usage }
    }

    fn with_choices(&self, choices: Vec<ChunkChoice>, usage: Option<CompletionUsage>) -> CompletionChunk {
        let Self { id, model, created } = self.clone();
        CompletionChunk { id, object: "chat.completion.chunk", created, model, choices, usage }
    }

    pub(crate) fn chunk(&self, delta: ChunkDelta, finish_reason: Option<&'static str>) -> CompletionChunk {
        self.with_choices(vec![ChunkChoice { index: 0, delta, finish_reason }], None)
    }

    pub(crate) fn usage_chunk(&self, usage: CompletionUsage) -> CompletionChunk {
        self.with_choices(vec![], Some(usage))
    }
}

/// The text of a reply.
pub(crate) fn content_of(reply: &TurnReply, language: Language) -> String {
    let [decision, time, end] = notices(language);
    let is_silent = reply.messages.is_empty();
    let notice = match SessionStatus::parse(&reply.status) {
        Some(SessionStatus::WaitingApproval) => Some(decision),
        Some(SessionStatus::WaitingInput) if !reply.waits_for_person() => Some(decision),
        Some(SessionStatus::WaitingTime) => Some(time),
        Some(status) if status.is_final() && is_silent => Some(end),
        _ => None,
    };
    let texts = reply.messages.iter().map(|message| message.text.as_str());
    texts.chain(notice.as_deref()).collect::<Vec<_>>().join(BETWEEN)
}

/// What is said, after what a session says, when it does not wait for the person: it waits for a decision, or for a time, or it is over
/// without a word. What a decision is about is not for the person in the conversation.
pub(crate) fn notices(language: Language) -> [String; 3] {
    [
        Message::word("The conversation goes on after a decision of somebody else."),
        Message::word("The conversation goes on later."),
        Message::word("The conversation has ended."),
    ]
    .map(|text| text.render(language))
}

/// The tokens of the model calls after an event, up to another one.
pub(crate) async fn usage_of(store: &dyn Store, id: &str, after: u64, until: u64) -> Result<CompletionUsage, Problem> {
    let mut usage = CompletionUsage::default();
    let mut at = after;
    loop {
        let rows = store.journal_by_kind(id, "model_call", at, PAGE).await?;
        let Some(last) = rows.last() else { break };
        at = last.seq;
        for row in rows.iter().filter(|row| row.seq <= until) {
            let call = parsed(&row.body)?;
            let number = |name: &str| call.get(name).and_then(Value::as_u64).unwrap_or_default();
            usage.prompt_tokens += number("tokens_in");
            usage.completion_tokens += number("tokens_out");
        }
    }
    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
    Ok(usage)
}
