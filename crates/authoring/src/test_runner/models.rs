//! The models of a test: written replies, the offline responder or a configured one; and what they were asked.

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
use bcc_lang::script::test::replies::{Asker, Model, Replies, Sent, WrittenReply};
use bcc_lang::script::test::scripted_error::{ScriptedError, Slow};
use bcc_lang::script::test::test::WrittenTest;
use bcc_llm::model::error::{ModelError, TimeoutPhase};
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_llm::providers::offline::Offline;
use bcc_llm::providers::scripted::Scripted;
use bcc_llm::providers::scripted::entries::{NextReply, ReplyEntry, ReplyKey, ReplyList};
use bcc_llm::providers::scripted::time::VirtualTime;
use bcc_runtime::program::models::ModelProviders;

const OFFLINE: &str = "offline";

/// The most calls of a model for each turn that a test allows: a loop that never waits for the person ends with it.
const CALLS_PER_TURN: u64 = 10;

#[derive(Clone, Debug)]
pub struct CapturedCall {
    pub purpose: Purpose,
    pub action_id: String,
    pub messages: Vec<ChatMessage>,
}

#[derive(Debug, Default)]
struct SoFar {
    calls: u64,
    /// Of each asker the newest, with its number; a conversation may be long, and nobody looks at the others.
    newest: HashMap<(Purpose, String), (u64, CapturedCall)>,
}

/// What the models of one conversation were asked, and how long that may go on.
#[derive(Debug)]
pub struct Watch {
    asked: Mutex<SoFar>,
    remember: bool,
    most: u64,
    until: Instant,
}

impl Watch {
    /// Watches a conversation of so many turns, for so long; prompts are remembered where somebody will look at them.
    pub fn new(turns: u32, limit: Duration, remember: bool) -> Self {
        let most = u64::from(turns).saturating_mul(CALLS_PER_TURN);
        Self { asked: Mutex::default(), remember, most, until: Instant::now() + limit }
    }

    /// The newest prompt of this purpose and action; of any action without one.
    pub fn newest(&self, purpose: Purpose, action_id: Option<&str>) -> Option<CapturedCall> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |asked: &CapturedCall| asked.purpose == purpose && action_id.is_none_or(|id| id == asked.action_id);
        let newest = asked.newest.values().filter(|(_, asked)| fits(asked)).max_by_key(|(number, _)| *number);
        newest.map(|(_, asked)| asked.clone())
    }

    /// Why the conversation does not come to an end, when it does not.
    pub fn endless(&self) -> Option<Message> {
        let calls = self.asked.lock().unwrap_or_else(PoisonError::into_inner).calls;
        if calls > self.most {
            return Some(msg!("the models were asked more than {} times", self.most));
        }
        (Instant::now() > self.until).then(|| Message::word("it takes too long"))
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
            Some(why) => Err(ModelError::Config { message: msg!("the conversation does not end: {why}") }),
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
    /// The models of `test`, with what is shared with other conversations. `asked` (`--model`) stands in the place of a model that is not written out.
    pub fn of(
        test: &WrittenTest,
        tried: &LoadedScript,
        asked: Option<&str>,
        (environment, shared): (&Environment, &Arc<SharedModels>),
        time: &Arc<VirtualTime>,
        watch: Arc<Watch>,
    ) -> Result<Self, EngineError> {
        let scripted = || Arc::new(Scripted::new(test.replies().map(list).collect(), Arc::clone(time)));
        let named = match &test.model {
            Some(Model::Scripted(_)) => {
                let scripted = scripted();
                let inner = Inner::One(Arc::clone(&scripted) as Arc<dyn Provider>);
                let name = scripted.name().to_owned();
                return Ok(Self { inner, monitors: test.monitors, watch, name, scripted: Some(scripted) });
            }
            Some(Model::Named(name)) => asked.unwrap_or(&name.value),
            None => asked.unwrap_or(OFFLINE),
        };
        let (inner, name) = if named == OFFLINE {
            (Inner::One(Arc::new(Offline) as Arc<dyn Provider>), OFFLINE.to_owned())
        } else {
            let wanted = RequestedModel { asked: Some(named), stored: None, script: tried.program.model.as_deref() };
            let chosen = choose(&tried.project, environment, shared, wanted)?;
            (Inner::Configured(Box::new(chosen.models)), chosen.name)
        };
        // Monitors may be written out where the model is not.
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

    fn manners(&self) -> ReplyPolicy {
        self.provider.manners()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.watch.note(request)?;
        self.provider.complete(request, live).await
    }
}

/// Written replies as a scripted model has them; the numbers of its lists are those of [`WrittenTest::replies`].
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
        come: come(&written.sent),
    }
}

fn come(sent: &Sent) -> NextReply {
    match sent {
        Sent::Value(value) => NextReply::Value(value.clone()),
        Sent::Text(text) => NextReply::Text(text.clone()),
        Sent::Cut(characters, whole) => {
            NextReply::Cut(usize::try_from(*characters).unwrap_or(usize::MAX), Box::new(come(whole)))
        }
        Sent::Fault(ScriptedError::Http { status, retry_after, message }) => {
            NextReply::Http { status: *status, retry_after: *retry_after, message: message.clone() }
        }
        Sent::Fault(ScriptedError::Timeout(slow)) => NextReply::Timeout(match slow {
            Slow::FirstToken => TimeoutPhase::FirstToken,
            Slow::Idle => TimeoutPhase::Idle,
            Slow::Total => TimeoutPhase::Total,
        }),
        Sent::Fault(ScriptedError::Unreachable) => NextReply::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_llm::model::message::Role;
    use bcc_llm::model::request::Task;

    #[test]
    fn the_prompt_of_an_asker_is_the_newest_however_many_there_were() {
        let watch = Watch::new(10_000, Duration::from_secs(600), true);
        for call in 0..5_000 {
            let task = Task {
                purpose: Purpose::Action,
                kind: "ai_ask".into(),
                action_id: format!("ask_{}", call % 2),
                path: String::new(),
                content: String::new(),
                wanted: vec![],
                answer: None,
                inputs: vec![],
                round: 1,
                call,
                opening: false,
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
