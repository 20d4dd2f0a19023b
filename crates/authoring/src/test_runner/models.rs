//! The models of a test: scripted replies, the offline responder or a configured model. Records their requests.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::test_runner::scripts::LoadedScript;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::models::choose::{RequestedModel, choose};
use bcc_engine::models::shared::SharedModels;
use bcc_lang::script::test::replies::{Asker, Model, Replies, SentReply, WrittenReply};
use bcc_lang::script::test::scripted_error::{ScriptedError, TimeoutKind};
use bcc_lang::script::test::test::WrittenTest;
use bcc_llm::model::error::{ModelError, TimeoutPhase};
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_llm::providers::offline::Offline;
use bcc_llm::providers::scripted::Scripted;
use bcc_llm::providers::scripted::entries::{NextReply, ReplyEntry, ReplyKey, ReplyList};
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::program::models::ModelProviders;

const OFFLINE: &str = "offline";

/// The maximum number of model calls per allowed turn: it ends a loop that never waits for input.
const CALLS_PER_TURN: u64 = 10;

#[derive(Clone, Debug)]
pub struct CapturedCall {
    pub purpose: Purpose,
    pub action_id: String,
    pub messages: Vec<ChatMessage>,
}

#[derive(Debug, Default)]
struct CallHistory {
    calls: u64,
    /// The newest call of each caller, with its number; older ones are not needed, and a conversation may be long.
    newest: HashMap<(Purpose, String), (u64, CapturedCall)>,
}

/// Records the model calls of one conversation, and limits their number and time.
#[derive(Debug)]
pub struct Watch {
    asked: Mutex<CallHistory>,
    remember: bool,
    max_calls: u64,
    deadline: Instant,
}

impl Watch {
    /// Watches a conversation with a maximum number of turns and a time limit. Prompts are recorded only if `remember` is set.
    pub fn new(turns: u32, limit: Duration, remember: bool) -> Self {
        let max_calls = u64::from(turns).saturating_mul(CALLS_PER_TURN);
        Self { asked: Mutex::default(), remember, max_calls, deadline: Instant::now() + limit }
    }

    /// The newest prompt with this purpose and action, or of any action.
    pub fn newest(&self, purpose: Purpose, action_id: Option<&str>) -> Option<CapturedCall> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |asked: &CapturedCall| asked.purpose == purpose && action_id.is_none_or(|id| id == asked.action_id);
        let newest = asked.newest.values().filter(|(_, asked)| fits(asked)).max_by_key(|(number, _)| *number);
        newest.map(|(_, asked)| asked.clone())
    }

    /// Why the conversation does not end, if it exceeded a limit.
    pub fn endless(&self) -> Option<Message> {
        let calls = self.asked.lock().unwrap_or_else(PoisonError::into_inner).calls;
        if calls > self.max_calls {
            return Some(msg!("the models were asked more than {} times", self.max_calls));
        }
        (Instant::now() > self.deadline).then(|| Message::word("it takes too long"))
    }

    fn note(&self, request: &ModelRequest) -> Result<(), ModelError> {
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.calls += 1;
            if self.remember {
                let task = &request.task;
                let (purpose, action_id) = (task.purpose, task.action_id.clone());
                let (number, key) = (asked.calls, (purpose, action_id.clone()));
                asked
                    .newest
                    .insert(key, (number, CapturedCall { purpose, action_id, messages: request.messages.clone() }));
            }
        }
        match self.endless() {
            Some(reason) => {
                Err(ModelError::Config { message: msg!("the conversation does not end: {why}", why = reason) })
            }
            None => Ok(()),
        }
    }
}

pub struct TestModels {
    inner: Inner,
    monitors: bool,
    watch: Arc<Watch>,
    pub name: String,
    pub scripted: Option<Arc<Scripted>>,
}

enum Inner {
    One(Arc<dyn Provider>),
    Configured(Box<dyn ModelProviders>),
}

impl TestModels {
    /// The models of `test`. Shared state is used by all conversations. `asked` (`--model`) replaces a model that is
    /// not scripted.
    pub fn of(
        test: &WrittenTest,
        script: &LoadedScript,
        asked: Option<&str>,
        (environment, shared): (&Environment, &Arc<SharedModels>),
        time: &Arc<VirtualTime>,
        watch: Arc<Watch>,
    ) -> Result<Self, EngineError> {
        let scripted = || Arc::new(Scripted::new(test.replies().map(list).collect(), Arc::clone(time)));
        let named = match &test.model {
            Some(Model::Scripted { others_offline, .. }) => {
                let scripted = scripted();
                let inner = Inner::One(match others_offline {
                    true => Arc::new(OthersOffline(Arc::clone(&scripted))) as Arc<dyn Provider>,
                    false => Arc::clone(&scripted) as Arc<dyn Provider>,
                });
                let name = scripted.name().to_owned();
                return Ok(Self { inner, monitors: test.monitors, watch, name, scripted: Some(scripted) });
            }
            Some(Model::Named(name)) => asked.unwrap_or(&name.value),
            None => asked.unwrap_or(OFFLINE),
        };
        let (inner, name) = if named == OFFLINE {
            (Inner::One(Arc::new(Offline) as Arc<dyn Provider>), OFFLINE.to_owned())
        } else {
            let wanted =
                RequestedModel { requested: Some(named), stored: None, script: script.program.model.as_deref() };
            let chosen = choose(&script.project, environment, shared, wanted)?;
            (Inner::Configured(Box::new(chosen.models)), chosen.name)
        };
        // Monitors may be scripted even if the model is not.
        let scripted = (!test.monitor.is_empty()).then(scripted);
        Ok(Self { inner, monitors: test.monitors, watch, name, scripted })
    }

    fn watched(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Watched { provider, watch: Arc::clone(&self.watch) })
    }
}

impl ModelProviders for TestModels {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        let provider = match &self.inner {
            Inner::One(provider) => Arc::clone(provider),
            Inner::Configured(models) => models.provider(name)?,
        };
        Ok(self.watched(provider))
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        let provider = match (&self.scripted, &self.inner) {
            (Some(scripted), _) => Some(Arc::clone(scripted) as Arc<dyn Provider>),
            (None, Inner::One(provider)) => Some(Arc::clone(provider)),
            (None, Inner::Configured(models)) => models.monitor(action_id),
        };
        let provider = provider.filter(|provider| self.monitors && provider.answers(Purpose::Monitor, action_id))?;
        Some(self.watched(provider))
    }
}

/// Scripted replies, and the offline responder for all askers without a list.
struct OthersOffline(Arc<Scripted>);

#[async_trait]
impl Provider for OthersOffline {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.0.answers(purpose, action_id) || Offline.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.0.reply_policy()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let Task { purpose, action_id, .. } = &request.task;
        if self.0.has_list(*purpose, action_id) {
            self.0.complete(request, live).await
        } else {
            Offline.complete(request, live).await
        }
    }
}

struct Watched {
    provider: Arc<dyn Provider>,
    watch: Arc<Watch>,
}

#[async_trait]
impl Provider for Watched {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.provider.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.provider.reply_policy()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.watch.note(request)?;
        self.provider.complete(request, live).await
    }
}

/// Scripted replies for the scripted model; the indexes of its lists are those of [`WrittenTest::replies`].
fn list(replies: &Replies) -> ReplyList {
    let key = match &replies.asker {
        Asker::Anyone => ReplyKey::Anyone,
        Asker::One { purpose, action } => match (Purpose::parse(purpose).unwrap_or(Purpose::Action), action.as_str()) {
            (Purpose::Action, "*") => ReplyKey::Anyone,
            (purpose, "*") => ReplyKey::Every(purpose),
            (purpose, action) => ReplyKey::One(purpose, action.to_owned()),
        },
    };
    ReplyList { key, entries: replies.entries.iter().map(entry).collect() }
}

fn entry(written: &WrittenReply) -> ReplyEntry {
    ReplyEntry {
        round: written.round,
        answered: written.answered,
        after: Duration::from_millis(written.after_ms),
        reply: next_reply(&written.sent),
    }
}

fn next_reply(sent: &SentReply) -> NextReply {
    match sent {
        SentReply::Value(value) => NextReply::Value(value.clone()),
        SentReply::Text(text) => NextReply::Text(text.clone()),
        SentReply::Cut(characters, reply) => {
            NextReply::Cut(usize::try_from(*characters).unwrap_or(usize::MAX), Box::new(next_reply(reply)))
        }
        SentReply::Error(ScriptedError::Http { status, retry_after, message }) => {
            NextReply::Http { status: *status, retry_after: *retry_after, message: message.clone() }
        }
        SentReply::Error(ScriptedError::Timeout(slow)) => NextReply::Timeout(match slow {
            TimeoutKind::FirstToken => TimeoutPhase::FirstToken,
            TimeoutKind::Idle => TimeoutPhase::Idle,
            TimeoutKind::Total => TimeoutPhase::Total,
        }),
        SentReply::Error(ScriptedError::Unreachable) => NextReply::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_llm::model::message::Role;

    #[test]
    fn the_newest_prompt_of_each_caller_is_returned() {
        let watch = Watch::new(10_000, Duration::from_secs(600), true);
        for call in 0..5_000 {
            let task = Task {
                kind: "ai_ask".into(),
                action_id: format!("ask_{}", call % 2),
                round: 1,
                call,
                ..Task::default()
            };
            let messages = vec![ChatMessage { role: Role::User, content: format!("prompt {call}") }];
            watch.note(&ModelRequest { messages, schema: None, temperature: None, max_tokens: None, task }).unwrap();
        }
        let newest = |id| watch.newest(Purpose::Action, id).unwrap().messages[0].content.clone();
        assert_eq!(
            [newest(None), newest(Some("ask_0")), newest(Some("ask_1"))],
            ["prompt 4999", "prompt 4998", "prompt 4999"]
        );
        assert!(watch.newest(Purpose::Monitor, None).is_none());
    }
}
