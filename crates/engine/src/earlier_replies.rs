//! The replies of models in an earlier session, for a session that repeats it from a step (docs/retry.md): a call with the same
//! prompt gets the same reply, without asking the model.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::error::EngineError;
use crate::export::events_of;
use crate::pin::sha256;
use crate::settings::RunSettings;
use crate::taken_back::TakenBackEvents;
use bcc_lang::value::mask::MASK;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_llm::prompt_time::without_times;
use bcc_runtime::program::models::ModelProviders;
use bcc_store::contract::Store;

/// The name of the model in events of calls that got an earlier reply.
const RECORDED: &str = "recorded";

/// The replies by the digest of their prompt, in their order.
type Replies = HashMap<String, VecDeque<String>>;

/// The same models, with the replies that they gave in the session which the session `id` repeats, except those that it has got before.
/// There are none if it repeats no other one, if that is not stored any more, or if another model is asked for everything.
pub(crate) async fn with_earlier_replies(
    store: &dyn Store,
    id: &str,
    settings: &RunSettings,
    models: Arc<dyn ModelProviders>,
) -> Result<Arc<dyn ModelProviders>, EngineError> {
    let Some(of) = settings.retry_of.as_deref().filter(|_| !settings.asks_anew) else { return Ok(models) };
    let seq = settings.retry_seq.unwrap_or_default();
    let replies = replies_for(store, of, seq, id).await?;
    if replies.is_empty() {
        return Ok(models);
    }
    Ok(Arc::new(RecordedModels { models, replies: Arc::new(Mutex::new(replies)), used: UsedReplies::default() }))
}

/// How many earlier replies were used.
#[derive(Clone, Default)]
pub(crate) struct UsedReplies(Arc<AtomicU64>);

impl UsedReplies {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The same models, with the replies that they gave in the session `of` after the event `seq`. Counts those that are used.
pub(crate) async fn with_counted_replies(
    store: &dyn Store,
    of: &str,
    seq: Option<u64>,
    models: Arc<dyn ModelProviders>,
    used: &UsedReplies,
) -> Result<Arc<dyn ModelProviders>, EngineError> {
    let replies = earlier_replies(store, of, seq.unwrap_or_default()).await?;
    Ok(Arc::new(RecordedModels { models, replies: Arc::new(Mutex::new(replies)), used: used.clone() }))
}

/// The number of replies that can be used again.
pub(crate) async fn count_earlier_replies(store: &dyn Store, of: &str, seq: u64) -> Result<usize, EngineError> {
    Ok(earlier_replies(store, of, seq).await?.values().map(VecDeque::len).sum())
}

/// Those that the session `id`, which repeats it, has not got yet.
async fn replies_for(store: &dyn Store, of: &str, seq: u64, id: &str) -> Result<Replies, EngineError> {
    let mut replies = earlier_replies(store, of, seq).await?;
    if !replies.is_empty() {
        for (digest, _) in answered_calls(store, id, seq).await? {
            replies.get_mut(&digest).and_then(VecDeque::pop_front);
        }
    }
    Ok(replies)
}

async fn earlier_replies(store: &dyn Store, of: &str, seq: u64) -> Result<Replies, EngineError> {
    let mut replies = Replies::new();
    for (digest, reply) in answered_calls(store, of, seq).await? {
        // Instead of a sensitive value, the journal has a mask.
        if !reply.contains(MASK) {
            replies.entry(digest).or_default().push_back(reply);
        }
    }
    Ok(replies)
}

/// The digest of the prompt and the reply of each call of the session `id` after the event `seq`, without those that were taken back.
async fn answered_calls(store: &dyn Store, id: &str, seq: u64) -> Result<Vec<(String, String)>, EngineError> {
    let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
    // The prompt and the reply are in the outcome of the turn, or else in the event of the call.
    let mut events = events_of(store, id, "outcome").await?;
    events.extend(events_of(store, id, "model_call").await?);
    let number = |event: &Value| event.get("seq").and_then(Value::as_u64).unwrap_or_default();
    events.sort_by_key(number);
    let mut calls = Vec::new();
    for event in taken_back.others(events).iter().filter(|event| number(event) > seq) {
        let part = |name: &str| event.get("debug_info").and_then(|info| info.get(name));
        let (Some(prompt), Some(reply)) = (part("llm_prompt"), part("llm_response").and_then(Value::as_str)) else {
            continue;
        };
        let messages: Result<Vec<ChatMessage>, _> = serde_json::from_value(prompt.clone());
        if let Some(digest) = messages.ok().and_then(|messages| digest(&messages)) {
            calls.push((digest, reply.to_owned()));
        }
    }
    Ok(calls)
}

/// The digest of a prompt without its times: a session that repeats another one does so later.
fn digest(messages: &[ChatMessage]) -> Option<String> {
    serde_json::to_string(messages).ok().map(|text| sha256(without_times(&text).as_bytes()))
}

struct RecordedModels {
    models: Arc<dyn ModelProviders>,
    replies: Arc<Mutex<Replies>>,
    used: UsedReplies,
}

impl RecordedModels {
    fn recorded(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(RecordedProvider { provider, replies: Arc::clone(&self.replies), used: self.used.clone() })
    }
}

impl ModelProviders for RecordedModels {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        self.models.provider(name).map(|provider| self.recorded(provider))
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        self.models.monitor(action_id).map(|provider| self.recorded(provider))
    }
}

struct RecordedProvider {
    provider: Arc<dyn Provider>,
    replies: Arc<Mutex<Replies>>,
    used: UsedReplies,
}

#[async_trait]
impl Provider for RecordedProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.provider.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.provider.reply_policy()
    }

    fn reply_policy_for(&self, task: &Task) -> ReplyPolicy {
        self.provider.reply_policy_for(task)
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let recorded = digest(&request.messages).and_then(|digest| {
            let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
            replies.get_mut(&digest).and_then(VecDeque::pop_front)
        });
        let Some(text) = recorded else { return self.provider.complete(request, live).await };
        self.used.0.fetch_add(1, Ordering::AcqRel);
        if !text.is_empty() {
            live.text(&text);
        }
        Ok(ModelReply {
            text,
            model: RECORDED.to_owned(),
            answered_by: Some(RECORDED.to_owned()),
            ..ModelReply::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, JournalRow, NewSessionRow};
    use serde_json::json;

    const PROMPT: &str = "the same";

    /// Stores a session whose calls with the same prompt got these replies.
    async fn asked(store: &MemoryStore, id: &str, replies: &[&str]) {
        let line = |(at, reply): (usize, &&str)| {
            let messages = json!([{ "role": "user", "content": PROMPT }]);
            let seq = at as u64 + 1;
            let event = json!({ "seq": seq, "type": "model_call", "debug_info": { "llm_prompt": messages, "llm_response": reply } });
            JournalRow { seq, at: String::new(), kind: "model_call".into(), body: event.to_string() }
        };
        let first = Commit { journal: replies.iter().enumerate().map(line).collect(), ..Commit::default() };
        let session = NewSessionRow { id: id.into(), ..NewSessionRow::default() };
        store.create(&session, &[], &first).await.unwrap();
    }

    #[tokio::test]
    async fn each_reply_is_used_once_also_after_a_resume() {
        let store = MemoryStore::default();
        asked(&store, "earlier", &["one", "***", "two", "three"]).await;
        let replies = replies_for(&store, "earlier", 0, "none").await.unwrap();
        let left: Vec<&str> = replies.values().flatten().map(String::as_str).collect();
        assert_eq!(left, ["one", "two", "three"], "without those that are masked");
        asked(&store, "resumed", &["one", "two"]).await;
        let replies = replies_for(&store, "earlier", 0, "resumed").await.unwrap();
        let left: Vec<&str> = replies.values().flatten().map(String::as_str).collect();
        assert_eq!(left, ["three"]);
        assert!(replies_for(&store, "earlier", 4, "resumed").await.unwrap().is_empty(), "only what is later");
    }
}
