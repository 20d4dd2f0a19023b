//! A model that answers what a conversation test has written, attempt by attempt, in the test's own time.
//!
//! Each attempt of a call takes the next entry, so `[{http: 503}, {content: …}]` is one call of two attempts, with the same
//! [`Retries`] as of a real server. Nothing really waits: see [`VirtualTime`].

pub mod entries;
pub mod time;

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::http::retry::Retries;
use crate::model::error::{ModelError, TimeoutPhase};
use crate::model::provider::{LiveObserver, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};
use crate::model::tokens::{estimate, estimate_prompt};
use crate::providers::scripted::entries::{NextReply, ReplyEntry, ReplyKey, ReplyList};
use crate::providers::scripted::time::VirtualTime;

pub const NAME: &str = "scripted";

/// Requests of one call, and the middle of the first pause between them: those of a server that nobody configured.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What a timeout of each limit takes, likewise.
const FIRST_TOKEN: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(30);
const TOTAL: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Scripted {
    lists: Vec<ReplyList>,
    time: Arc<VirtualTime>,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// How many entries in order each list has given.
    next: Vec<usize>,
    /// The entries by round that were given: the list and the entry.
    named: Vec<(usize, usize)>,
    /// How often each asker asked, attempts counted.
    asked: BTreeMap<(Purpose, String), usize>,
    missing: Vec<MissingReply>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReply {
    pub purpose: Purpose,
    pub action_id: String,
    /// Its list of replies, by number; none when it has none.
    pub list: Option<usize>,
    /// How many requests it had made with this one.
    pub asked: usize,
    pub round: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedReplies {
    pub list: usize,
    /// How many of its entries were given.
    pub used: usize,
    pub of: usize,
}

impl Scripted {
    pub fn new(lists: Vec<ReplyList>, time: Arc<VirtualTime>) -> Self {
        let used = Used { next: vec![0; lists.len()], ..Used::default() };
        Self { lists, time, used: Mutex::new(used) }
    }

    pub fn has(&self, purpose: Purpose) -> bool {
        let of_purpose =
            |list: &ReplyList| matches!(&list.key, ReplyKey::One(of, _) | ReplyKey::Every(of) if *of == purpose);
        self.lists.iter().any(of_purpose)
    }

    /// Who asked for more than there is, in the order in which it happened.
    pub fn missing(&self) -> Vec<MissingReply> {
        self.used().missing.clone()
    }

    pub fn left_over(&self) -> Vec<UnusedReplies> {
        let used = self.used();
        let of_list = |(number, list): (usize, &ReplyList)| {
            let given =
                used.next.get(number).copied().unwrap_or(0) + used.named.iter().filter(|(of, _)| *of == number).count();
            (given < list.entries.len()).then_some(UnusedReplies { list: number, used: given, of: list.entries.len() })
        };
        self.lists.iter().enumerate().filter_map(of_list).collect()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list for an asker: its own, else that for everyone of its purpose, else that for anyone.
    fn list(&self, purpose: Purpose, action_id: &str) -> Option<usize> {
        let at = |wanted: &dyn Fn(&ReplyKey) -> bool| self.lists.iter().position(|list| wanted(&list.key));
        at(&|key| matches!(key, ReplyKey::One(of, id) if *of == purpose && id == action_id))
            .or_else(|| at(&|key| matches!(key, ReplyKey::Every(of) if *of == purpose)))
            .or_else(|| at(&|key| matches!(key, ReplyKey::Anyone if purpose == Purpose::Action)))
    }

    fn take(&self, task: &Task) -> Result<&ReplyEntry, ModelError> {
        let number = self.list(task.purpose, &task.action_id);
        let mut used = self.used();
        let asked = used.asked.entry((task.purpose, task.action_id.clone())).or_insert(0);
        *asked += 1;
        let asked = *asked;
        let found = number.and_then(|number| {
            let list = self.lists.get(number)?;
            if let Some(at) = list.entries.iter().position(|entry| entry.names(task)) {
                if !used.named.contains(&(number, at)) {
                    used.named.push((number, at));
                }
                return list.entries.get(at);
            }
            let next = used.next.get_mut(number)?;
            let entry = list.entries.iter().filter(|entry| !entry.is_named()).nth(*next)?;
            *next += 1;
            Some(entry)
        });
        match found {
            Some(entry) => Ok(entry),
            None => {
                let (purpose, action_id) = (task.purpose, task.action_id.clone());
                used.missing.push(MissingReply { purpose, action_id, list: number, asked, round: task.round });
                Err(ModelError::NoReply {
                    key: msg!("`{}`, request {asked} (round {})", task.action_id, task.round),
                    help: msg!("the test has no more replies for it"),
                })
            }
        }
    }

    async fn attempt(
        &self,
        come: &NextReply,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
    ) -> Result<String, ModelError> {
        let host = || NAME.to_owned();
        let timeout = |what, after| ModelError::Timeout { host: host(), what, after, attempts: 1 };
        match come {
            NextReply::Value(_) | NextReply::Text(_) => {
                let text = written(come, request);
                if !text.is_empty() {
                    live.text(&text);
                }
                Ok(text)
            }
            NextReply::Cut(characters, whole) => {
                let text: String = written(whole, request).chars().take(*characters).collect();
                if !text.is_empty() {
                    live.text(&text);
                }
                Err(ModelError::CutOff { host: host(), attempts: 1 })
            }
            NextReply::Http { status, retry_after, message } => Err(ModelError::Http {
                host: host(),
                status: *status,
                message: message.clone(),
                retry_after: *retry_after,
                attempts: 1,
            }),
            NextReply::Timeout(what) => {
                let after = match what {
                    TimeoutPhase::FirstToken => FIRST_TOKEN,
                    TimeoutPhase::Idle => IDLE,
                    TimeoutPhase::Total => TOTAL,
                };
                self.time.sleep(after).await;
                Err(timeout(*what, after))
            }
            NextReply::Unreachable => {
                let reason = "simulated by the test".to_owned();
                Err(ModelError::Unreachable { host: host(), reason, attempts: 1 })
            }
        }
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        NAME
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        purpose == Purpose::Action || self.list(purpose, action_id).is_some()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut retries = Retries::new(ATTEMPTS, FIRST_PAUSE);
        loop {
            let sent = retries.count();
            let entry = self.take(&request.task)?;
            // What a monitor may take is bounded by the machine's time, of which nothing passes here.
            if request.task.purpose != Purpose::Action && entry.after >= TOTAL {
                self.time.sleep(TOTAL).await;
                return Err(ModelError::Timeout {
                    host: NAME.into(),
                    what: TimeoutPhase::Total,
                    after: TOTAL,
                    attempts: sent,
                });
            }
            self.time.sleep(entry.after).await;
            let error = match self.attempt(&entry.come, request, live).await {
                Ok(text) => {
                    return Ok(ModelReply {
                        model: NAME.to_owned(),
                        tokens_in: Some(estimate_prompt(&request.messages)),
                        tokens_out: Some(estimate(&text)),
                        attempts: sent,
                        text,
                        ..ModelReply::default()
                    });
                }
                Err(error) => error,
            };
            let Some(pause) = retries.pause_after(&error) else { return Err(error.after_attempts(sent)) };
            self.time.sleep(pause).await;
            live.restart();
        }
    }
}

/// The text of a reply. A value is completed as the model that was told the schema would have: what it must have and does not
/// say takes its default, so that a test need write only what it is about.
fn written(come: &NextReply, request: &ModelRequest) -> String {
    match come {
        NextReply::Text(text) => text.clone(),
        NextReply::Value(Value::Object(fields)) => match request.schema.as_deref() {
            Some(schema) => Value::Object(completed(fields, schema)).to_string(),
            None => Value::Object(fields.clone()).to_string(),
        },
        NextReply::Value(other) => other.to_string(),
        NextReply::Cut(_, whole) => written(whole, request),
        NextReply::Http { .. } | NextReply::Timeout(_) | NextReply::Unreachable => String::new(),
    }
}

fn completed(fields: &Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return fields.clone() };
    let mut whole = Map::new();
    for (name, property) in properties {
        match (fields.get(name), property.get("default")) {
            (Some(Value::Object(inner)), _) => {
                whole.insert(name.clone(), Value::Object(completed(inner, property)));
            }
            (Some(value), _) => {
                whole.insert(name.clone(), value.clone());
            }
            (None, Some(default)) => {
                whole.insert(name.clone(), default.clone());
            }
            (None, None) => {}
        }
    }
    for (name, value) in fields {
        whole.entry(name.clone()).or_insert_with(|| value.clone());
    }
    whole
}

#[cfg(test)]
mod tests;
