//! A recording that is replayed (`--replay`): the same conversation without a network.
//!
//! Strictly, a call gets the reply of the recorded call of the same purpose, instance, round and number, and its prompt must be
//! the recorded one. By order, the calls of an action get its replies one after the other, whatever they ask.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::model::error::ModelError;
use crate::model::message::ChatMessage;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};
use crate::providers::replay::diff::{MASK, differences};
use crate::providers::replay::{NAME, describe, written};

/// The field of a recording's first line that says that it is one.
pub const MARK: &str = "recording";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMatching {
    /// The very calls that were recorded, with the prompts that were recorded.
    #[default]
    Prompt,
    /// In order, for each purpose and action.
    Order,
}

/// One line of a recording. Of older ones, which have no more than a key and a text, the prompts are not compared.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Line {
    pub(crate) purpose: Option<Purpose>,
    pub(crate) action_id: String,
    pub(crate) path: Option<String>,
    pub(crate) round: u32,
    pub(crate) call: u32,
    pub(crate) messages: Option<Vec<ChatMessage>>,
    pub(crate) text: Option<String>,
    pub(crate) error: Option<String>,
    /// Whether the turn went on though this call failed.
    #[serde(default)]
    went_on: bool,
    /// What stands in `messages` in the place of sensitive values.
    mask: Option<String>,
    model: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    #[serde(default)]
    cut_off: bool,
    #[serde(default)]
    repair: bool,
    #[serde(default)]
    reask: u32,
}

impl Line {
    fn purpose(&self) -> Purpose {
        self.purpose.unwrap_or(Purpose::Action)
    }

    fn mark(&self) -> &str {
        self.mask.as_deref().unwrap_or(MASK)
    }

    /// Whether it tells of the call of `task`, with whatever prompt.
    fn is_of(&self, task: &Task) -> bool {
        let instance = match &self.path {
            Some(path) => *path == task.path,
            None => self.action_id == task.action_id,
        };
        instance && self.purpose() == task.purpose && self.round == task.round && self.call == task.call
    }

    /// Whether both tell of the same call, asked in the same words.
    fn is_same_call(&self, other: &Self) -> bool {
        let same_words = match (&self.messages, &other.messages) {
            (Some(one), Some(others)) => differences(one, others, self.mark()).is_none(),
            _ => false,
        };
        same_words
            && self.purpose() == other.purpose()
            && (&self.path, &self.action_id, self.round, self.call)
                == (&other.path, &other.action_id, other.round, other.call)
    }
}

pub(crate) fn lines(text: &str) -> Result<Vec<Line>, Message> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        if lines.is_empty() && is_header(line) {
            continue;
        }
        let line: Line = serde_json::from_str(line).map_err(|error| {
            msg!(
                "line {number} is not a recorded exchange ({error}); it needs purpose, action_id, round, call and text"
            )
        })?;
        if line.purpose.is_none() || (line.text.is_none() && line.error.is_none()) {
            return Err(msg!(
                "line {number} is not a recorded exchange; it needs purpose, action_id, round, call and text"
            ));
        }
        lines.push(line);
    }
    Ok(lines)
}

pub fn is_header(line: &str) -> bool {
    matches!(serde_json::from_str::<Value>(line), Ok(Value::Object(fields)) if fields.contains_key(MARK))
}

#[derive(Debug)]
pub struct Recording {
    file: String,
    by: ReplayMatching,
    lines: Vec<Line>,
    /// Those of them that are of actions and were replayed, and how many of each purpose and action were.
    replayed: Mutex<Replayed>,
    progress: Notify,
}

#[derive(Debug, Default)]
struct Replayed {
    lines: Vec<bool>,
    of: HashMap<(Purpose, String), usize>,
    waiting: usize,
}

impl Recording {
    /// Reads a recording. `name` is how errors call the file.
    pub fn parse(name: &str, text: &str, by: ReplayMatching) -> Result<Self, ModelError> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let wrong = |problem: Message| ModelError::Config { message: msg!("the recording {name}: {problem}") };
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if !first.trim_start().starts_with('{') {
            let problem = "it is not a recording (`run --record` creates one); for hand-written replies, use `--model replay:FILE`";
            return Err(wrong(problem.into()));
        }
        let lines = counting(lines(text).map_err(wrong)?);
        let replayed = Mutex::new(Replayed { lines: vec![false; lines.len()], ..Replayed::default() });
        Ok(Self { file: name.to_owned(), by, lines, replayed, progress: Notify::new() })
    }

    /// Takes note of a call that an earlier process of the same session got its reply for.
    pub fn replayed_before(&self, purpose: Purpose, action_id: &str) {
        let mut replayed = self.replayed();
        *replayed.of.entry((purpose, action_id.to_owned())).or_default() += 1;
        if purpose == Purpose::Action {
            // A call that failed is no call that got its reply.
            let counts = |line: &Line| line.purpose() == Purpose::Action && line.text.is_some();
            let next = self.lines.iter().zip(&replayed.lines).position(|(line, done)| counts(line) && !done);
            if let Some(done) = next.and_then(|next| replayed.lines.get_mut(next)) {
                *done = true;
            }
        }
    }

    fn replayed(&self) -> MutexGuard<'_, Replayed> {
        self.replayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded call that this one is, and its place in the recording.
    fn find(&self, request: &ModelRequest) -> Result<(usize, &Line), ModelError> {
        let task = &request.task;
        let missing = |help: Message| ModelError::NoReply { key: describe(task), help };
        if self.by == ReplayMatching::Order {
            let key = (task.purpose, task.action_id.clone());
            let done = self.replayed().of.get(&key).copied().unwrap_or(0);
            let of_it = |line: &Line| line.purpose() == task.purpose && line.action_id == task.action_id;
            let its = || self.lines.iter().enumerate().filter(|(_, line)| of_it(line));
            // What failed then without harm fails again: else the reply of another turn would stand in for it.
            let before =
                |place: usize| its().take_while(move |(at, _)| *at < place).filter(|(_, line)| line.text.is_some());
            let harmless = |(place, line): &(usize, &Line)| {
                line.went_on && (line.round, line.call) == (task.round, task.call) && before(*place).count() == done
            };
            if let Some((_, line)) = its().find(harmless) {
                return Err(self.failed_then(task, line));
            }
            return its().filter(|(_, line)| line.text.is_some()).nth(done).ok_or_else(|| {
                missing(msg!("{} has {done} for `{}`", self.file, written(task.purpose, &task.action_id)))
            });
        }
        let its: Vec<(usize, &Line)> = self.lines.iter().enumerate().filter(|(_, line)| line.is_of(task)).collect();
        let Some((_, last)) = its.last() else {
            let told = msg!(
                "{} has no such exchange: the conversation took a different path or ended earlier; use `--replay-by order` to match by order",
                self.file
            );
            return Err(missing(told));
        };
        let same = |line: &Line| {
            line.messages.as_ref().is_none_or(|then| differences(then, &request.messages, line.mark()).is_none())
        };
        // Of two that were asked the same, the earlier one came to nothing.
        if let Some((place, line)) = its.iter().rev().find(|(_, line)| same(line)) {
            return match &line.text {
                Some(_) => Ok((*place, line)),
                None => Err(self.failed_then(task, line)),
            };
        }
        let as_long = |line: &Line| line.messages.as_ref().is_some_and(|then| then.len() == request.messages.len());
        let nearest = its.iter().rev().map(|(_, line)| *line).find(|line| as_long(line)).unwrap_or(last);
        let then = nearest.messages.as_deref().unwrap_or_default();
        let diff = differences(then, &request.messages, nearest.mark()).unwrap_or_default();
        Err(ModelError::Differs { key: describe(task), file: self.file.clone(), diff })
    }

    fn failed_then(&self, task: &Task, line: &Line) -> ModelError {
        let error = line.error.clone().unwrap_or_default();
        ModelError::FailedThen { key: describe(task), file: self.file.clone(), error }
    }

    /// What was said beside the conversation comes when it came then: not before the calls of actions that it came after.
    async fn in_its_turn(&self, place: usize) {
        let earlier_are_done = || {
            let replayed = self.replayed();
            let mut earlier = self.lines.iter().zip(&replayed.lines).take(place);
            earlier.all(|(line, done)| *done || line.text.is_none() || line.purpose() != Purpose::Action)
        };
        let mut waits = false;
        loop {
            let progress = self.progress.notified();
            if earlier_are_done() {
                break;
            }
            if !waits {
                self.replayed().waiting += 1;
                waits = true;
            }
            progress.await;
        }
        if waits {
            let mut replayed = self.replayed();
            replayed.waiting = replayed.waiting.saturating_sub(1);
        }
    }
}

/// The exchanges that count: of two calls that asked the same, as there are when a turn was taken again, the later one; a call
/// that failed only where none came after it.
fn counting(lines: Vec<Line>) -> Vec<Line> {
    let mut last: HashMap<(Purpose, String, u32, u32), Vec<usize>> = HashMap::new();
    let mut counts = vec![true; lines.len()];
    for (place, line) in lines.iter().enumerate() {
        let instance = line.path.clone().unwrap_or_else(|| line.action_id.clone());
        let before = last.entry((line.purpose(), instance, line.round, line.call)).or_default();
        for earlier in before.iter() {
            let same = lines.get(*earlier).is_some_and(|earlier| earlier.is_same_call(line));
            if let Some(counts) = counts.get_mut(*earlier).filter(|_| same) {
                *counts = false;
            }
        }
        before.push(place);
    }
    lines.into_iter().zip(counts).filter_map(|(line, counts)| counts.then_some(line)).collect()
}

#[async_trait]
impl Provider for Recording {
    fn name(&self) -> &str {
        NAME
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        let its = |line: &Line| line.purpose() == purpose && line.action_id == action_id && line.text.is_some();
        purpose == Purpose::Action || self.lines.iter().any(its)
    }

    fn manners_of(&self, task: &Task) -> ReplyPolicy {
        let by_order = |line: &&Line| line.purpose() == task.purpose && line.action_id == task.action_id;
        let line = self.lines.iter().rev().find(|line| line.is_of(task)).or_else(|| self.lines.iter().find(by_order));
        line.map(|line| ReplyPolicy { repair: line.repair, reask: line.reask }).unwrap_or_default()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let (place, line) = self.find(request)?;
        let purpose = request.task.purpose;
        if purpose != Purpose::Action && self.by == ReplayMatching::Prompt {
            self.in_its_turn(place).await;
        }
        let waiting = {
            let mut replayed = self.replayed();
            *replayed.of.entry((purpose, request.task.action_id.clone())).or_default() += 1;
            if let Some(done) = replayed.lines.get_mut(place) {
                *done = true;
            }
            replayed.waiting
        };
        self.progress.notify_waiters();
        if purpose == Purpose::Action {
            // What came beside this very call has come when it is over.
            for _ in 0..waiting * 4 {
                tokio::task::yield_now().await;
            }
        }
        let text = line.text.clone().unwrap_or_default();
        if !text.is_empty() {
            live.text(&text);
        }
        Ok(ModelReply {
            text,
            model: line.model.clone().unwrap_or_else(|| NAME.to_owned()),
            tokens_in: line.tokens_in,
            tokens_out: line.tokens_out,
            attempts: 1,
            cut_off: line.cut_off,
            ..ModelReply::default()
        })
    }
}

#[cfg(test)]
mod tests;
