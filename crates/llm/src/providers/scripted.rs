//! A model with the replies of a conversation test, in virtual time.
//!
//! Each attempt of a call uses the next entry, so `[{http: 503}, {content: …}]` is one call with two attempts. The [`Retries`] are the
//! same as for a real server. Waiting takes no real time; see [`VirtualTime`].

pub mod entries;
pub mod time;

use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValue;
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

/// The maximum number of requests of a call, and the bound of the first pause: the defaults for a server.
const MAX_ATTEMPTS: u32 = 4;
const FIRST_BACKOFF: Duration = Duration::from_millis(500);

/// The duration of each timeout: the defaults for a server.
const FIRST_TOKEN_TIMEOUT: Duration = Duration::from_secs(60);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Scripted {
    lists: Vec<ReplyList>,
    time: Arc<VirtualTime>,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// The number of entries in order that were used, for each list.
    next: Vec<usize>,
    /// The entries by round that were used: the list and the entry.
    named: Vec<(usize, usize)>,
    /// The number of requests of each action and purpose, including retries.
    asked: BTreeMap<(Purpose, String), usize>,
    missing: Vec<MissingReply>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReply {
    pub purpose: Purpose,
    pub action_id: String,
    /// The number of its list of replies; `None` if it has none.
    pub list: Option<usize>,
    /// The number of its requests, including this one.
    pub requests: usize,
    pub round: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedReplies {
    pub list: usize,
    /// The number of used entries.
    pub used: usize,
    pub total: usize,
}

impl Scripted {
    pub fn new(lists: Vec<ReplyList>, time: Arc<VirtualTime>) -> Self {
        let used = Used { next: vec![0; lists.len()], ..Used::default() };
        Self { lists, time, used: Mutex::new(used) }
    }

    pub fn has(&self, purpose: Purpose) -> bool {
        let of_purpose =
            |list: &ReplyList| matches!(&list.key, ReplyKey::One(key, _) | ReplyKey::Every(key) if *key == purpose);
        self.lists.iter().any(of_purpose)
    }

    /// Whether a list applies to this action, even if its replies are used up.
    pub fn has_list(&self, purpose: Purpose, action_id: &str) -> bool {
        self.list(purpose, action_id).is_some()
    }

    /// The requests without a reply, in order.
    pub fn missing(&self) -> Vec<MissingReply> {
        self.used().missing.clone()
    }

    pub fn unused(&self) -> Vec<UnusedReplies> {
        let used = self.used();
        let unused_replies = |(number, list): (usize, &ReplyList)| {
            let used_count = used.next.get(number).copied().unwrap_or(0)
                + used.named.iter().filter(|(list, _)| *list == number).count();
            (used_count < list.entries.len()).then_some(UnusedReplies {
                list: number,
                used: used_count,
                total: list.entries.len(),
            })
        };
        self.lists.iter().enumerate().filter_map(unused_replies).collect()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list for an action: its own, or else that for its purpose, or else that for any action. What an action asks for a part of
    /// itself, as `plan_it/Data`, is also in its own list.
    fn list(&self, purpose: Purpose, action_id: &str) -> Option<usize> {
        let find = |matches: &dyn Fn(&ReplyKey) -> bool| self.lists.iter().position(|list| matches(&list.key));
        let of = |action_id: &str| {
            find(&|key| matches!(key, ReplyKey::One(key_purpose, id) if *key_purpose == purpose && id == action_id))
        };
        of(action_id)
            .or_else(|| of(action_id.split_once('/')?.0))
            .or_else(|| find(&|key| matches!(key, ReplyKey::Every(key_purpose) if *key_purpose == purpose)))
            .or_else(|| find(&|key| matches!(key, ReplyKey::Anyone if purpose == Purpose::Action)))
    }

    fn take(&self, task: &Task) -> Result<&ReplyEntry, ModelError> {
        let number = self.list(task.purpose, &task.action_id);
        let mut used = self.used();
        let asked = used.asked.entry((task.purpose, task.action_id.clone())).or_insert(0);
        *asked += 1;
        let asked = *asked;
        let found = number.and_then(|number| {
            let list = self.lists.get(number)?;
            if let Some(at) = list.entries.iter().position(|entry| entry.matches(task)) {
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
                used.missing.push(MissingReply {
                    purpose,
                    action_id,
                    list: number,
                    requests: asked,
                    round: task.round,
                });
                Err(ModelError::NoReply {
                    key: msg!("`{}`, request {asked} (round {})", task.action_id, task.round),
                    help: msg!("the test has no more replies for it"),
                })
            }
        }
    }

    async fn attempt(
        &self,
        reply: &NextReply,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
    ) -> Result<String, ModelError> {
        let host = || NAME.to_owned();
        let timeout = |phase, after| ModelError::Timeout { host: host(), phase, after, attempts: 1 };
        match reply {
            NextReply::Value(_) | NextReply::Text(_) => {
                let text = reply_text(reply, request);
                if !text.is_empty() {
                    live.text(&text);
                }
                Ok(text)
            }
            NextReply::Cut(characters, reply) => {
                let text: String = reply_text(reply, request).chars().take(*characters).collect();
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
            NextReply::Timeout(phase) => {
                let after = match phase {
                    TimeoutPhase::FirstToken => FIRST_TOKEN_TIMEOUT,
                    TimeoutPhase::Idle => IDLE_TIMEOUT,
                    TimeoutPhase::Total => TOTAL_TIMEOUT,
                };
                self.time.sleep(after).await;
                Err(timeout(*phase, after))
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
        purpose == Purpose::Action || self.has_list(purpose, action_id)
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut retries = Retries::new(MAX_ATTEMPTS, FIRST_BACKOFF);
        loop {
            let sent = retries.count();
            let entry = self.take(&request.task)?;
            // Monitors are limited in real time, which does not pass here, so that the limit is simulated.
            if request.task.purpose != Purpose::Action && entry.after >= TOTAL_TIMEOUT {
                self.time.sleep(TOTAL_TIMEOUT).await;
                return Err(ModelError::Timeout {
                    host: NAME.into(),
                    phase: TimeoutPhase::Total,
                    after: TOTAL_TIMEOUT,
                    attempts: sent,
                });
            }
            self.time.sleep(entry.after).await;
            let error = match self.attempt(&entry.reply, request, live).await {
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
            let Some(pause) = retries.pause_after(&error) else { return Err(error.with_attempts(sent)) };
            self.time.sleep(pause).await;
            live.restart();
        }
    }
}

/// The text of a reply. Missing fields of a value are set to the defaults of the complete schema, so that tests can omit them; the fields
/// are in the order of the schema that is sent.
fn reply_text(reply: &NextReply, request: &ModelRequest) -> String {
    match reply {
        NextReply::Text(text) => text.clone(),
        NextReply::Value(value) => match (value.as_object(), request.task.reply_schema.as_deref()) {
            (Some(fields), Some(rules)) => {
                let fields = with_defaults(fields, request.schema.as_deref().unwrap_or(rules), rules);
                ExactValue::new(Value::Object(fields), value.digits().cloned()).to_string()
            }
            _ => value.to_string(),
        },
        NextReply::Cut(_, reply) => reply_text(reply, request),
        NextReply::Http { .. } | NextReply::Timeout(_) | NextReply::Unreachable => String::new(),
    }
}

/// `fields` in the order of `sent`, completed with the defaults of `rules`; fields that `sent` does not list are last.
fn with_defaults(fields: &Map<String, Value>, sent: &Value, rules: &Value) -> Map<String, Value> {
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let (sent, rules) = (properties(sent), properties(rules));
    let mut complete = Map::new();
    for name in sent.keys().chain(rules.keys()).chain(fields.keys()) {
        if complete.contains_key(name) {
            continue;
        }
        let rule = rules.get(name).unwrap_or(&Value::Null);
        let value = match fields.get(name) {
            Some(Value::Object(inner)) => {
                Value::Object(with_defaults(inner, sent.get(name).unwrap_or(&Value::Null), rule))
            }
            Some(value) => value.clone(),
            None => match rule.get("default") {
                Some(default) => default.clone(),
                None => continue,
            },
        };
        complete.insert(name.clone(), value);
    }
    complete
}

#[cfg(test)]
mod tests;
