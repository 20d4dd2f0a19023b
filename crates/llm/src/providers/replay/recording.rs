//! Replays a recording (`--replay`): the same conversation without network access.
//!
//! In prompt mode, a call gets the reply of the recorded call with the same purpose, instance, round and number, and its prompt must
//! equal the recorded one. In order mode, the calls of an action get its replies in order, regardless of their prompts.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::model::call_span::local_call;
use crate::model::error::ModelError;
use crate::model::message::ChatMessage;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};
use crate::providers::replay::diff::{MASK, differences};
use crate::providers::replay::{NAME, describe, written};

/// The field in the first line that identifies a recording. Its value is the version of the format.
pub const HEADER_KEY: &str = "recording";

/// The version of the format that is written, and the only one that is read.
pub const FORMAT_VERSION: u64 = 1;

/// The field that identifies a line about an answer that was taken back.
pub const TAKEN_BACK_KEY: &str = "taken_back";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMatching {
    /// By call, with the recorded prompt.
    #[default]
    Prompt,
    /// By order, for each purpose and action.
    Order,
}

/// One line of a recording. Recordings of earlier releases contain no prompts, so these are not compared.
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
    /// Whether the turn continued although this call failed.
    #[serde(default)]
    went_on: bool,
    /// The replacement for sensitive values in `messages`.
    mask: Option<String>,
    model: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    #[serde(default)]
    cut_off: bool,
    finish_reason: Option<String>,
    #[serde(default)]
    refusal: bool,
    #[serde(default)]
    repair: bool,
    #[serde(default)]
    reask: u32,
    /// The number of its event.
    seq: Option<u64>,
    /// Whether it followed an answer that was taken back. The same conversation without that answer does not have this call.
    #[serde(skip)]
    pub(crate) is_taken_back: bool,
}

/// A line about an answer that was taken back.
#[derive(Deserialize)]
struct TakenBackLine {
    taken_back: TakenBackRange,
}

/// The numbers of the first and the last event that no longer count.
#[derive(Deserialize)]
struct TakenBackRange {
    from_seq: u64,
    to_seq: u64,
}

impl Line {
    fn purpose(&self) -> Purpose {
        self.purpose.unwrap_or(Purpose::Action)
    }

    fn mask_text(&self) -> &str {
        self.mask.as_deref().unwrap_or(MASK)
    }

    /// Whether it is the call of `task`, with any prompt.
    fn is_call_of(&self, task: &Task) -> bool {
        let instance = match &self.path {
            Some(path) => is_path(path, &task.path),
            None => self.action_id == task.action_id,
        };
        instance && self.purpose() == task.purpose && self.round == task.round && self.call == task.call
    }

    /// Whether the name of an element is masked in its path, so that calls for other elements can have the same path.
    fn has_masked_path(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.contains(MASK))
    }

    /// Whether both are the same call with the same prompt.
    fn is_same_call(&self, other: &Self) -> bool {
        let same_prompt = match (&self.messages, &other.messages) {
            (Some(own), Some(theirs)) => differences(own, theirs, self.mask_text()).is_none(),
            _ => false,
        };
        same_prompt
            && !self.has_masked_path()
            && self.purpose() == other.purpose()
            && (&self.path, &self.action_id, self.round, self.call)
                == (&other.path, &other.action_id, other.round, other.call)
    }
}

/// Whether `path` is the recorded one, in which names of elements (`topic@element#2/action`) may be masked. In the replay, a masked value has no
/// name that is valid in a path, and is called by its number.
pub(crate) fn is_path(recorded: &str, path: &str) -> bool {
    if !recorded.contains(MASK) {
        return recorded == path;
    }
    let named = |component: &str| -> Option<(String, Option<String>)> {
        let (topic, named) = component.split_once('@')?;
        Some((topic.to_owned(), named.split_once('#').map(|(_, visit)| visit.to_owned())))
    };
    let same = |(recorded, component): (&str, &str)| {
        recorded == component || (recorded.contains(MASK) && named(recorded) == named(component))
    };
    recorded.split('/').count() == path.split('/').count() && recorded.split('/').zip(path.split('/')).all(same)
}

pub(crate) fn lines(text: &str) -> Result<Vec<Line>, Message> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        if lines.is_empty()
            && let Some(version) = version_in(line)
        {
            if version != FORMAT_VERSION {
                return Err(msg!(
                    "its format is version {version}, and this release reads version {}: replay it with the release that recorded it",
                    FORMAT_VERSION
                ));
            }
            continue;
        }
        if let Ok(TakenBackLine { taken_back: TakenBackRange { from_seq, to_seq } }) = serde_json::from_str(line) {
            for earlier in &mut lines {
                earlier.is_taken_back |= earlier.seq.is_some_and(|seq| (from_seq..=to_seq).contains(&seq));
            }
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

/// The version of the format, if the line is the header.
fn version_in(line: &str) -> Option<Value> {
    serde_json::from_str::<Value>(line).ok()?.get(HEADER_KEY).cloned()
}

#[derive(Debug)]
pub struct Recording {
    file: String,
    matching: ReplayMatching,
    lines: Vec<Line>,
    /// Which lines were replayed, and how many of each purpose and action.
    replayed: Mutex<Replayed>,
    progress: Notify,
}

#[derive(Debug, Default)]
struct Replayed {
    lines: Vec<bool>,
    counts: HashMap<(Purpose, String), usize>,
    waiting: usize,
}

impl Recording {
    /// Parses a recording. `name` is the name of the file in errors.
    pub fn parse(name: &str, text: &str, matching: ReplayMatching) -> Result<Self, ModelError> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let config_error = |problem: Message| ModelError::Config { message: msg!("the recording {name}: {problem}") };
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if !first.trim_start().starts_with('{') {
            let problem = "it is not a recording (`run --record` creates one); for hand-written replies, use `--model replay:FILE`";
            return Err(config_error(problem.into()));
        }
        let lines = relevant_lines(lines(text).map_err(config_error)?);
        let replayed = Mutex::new(Replayed { lines: vec![false; lines.len()], ..Replayed::default() });
        Ok(Self { file: name.to_owned(), matching, lines, replayed, progress: Notify::new() })
    }

    /// Marks a call as replayed by an earlier process of the same session.
    pub fn mark_replayed(&self, purpose: Purpose, action_id: &str) {
        let mut replayed = self.replayed();
        *replayed.counts.entry((purpose, action_id.to_owned())).or_default() += 1;
        if purpose == Purpose::Action {
            // Failed calls do not count as replayed.
            let is_relevant =
                |line: &Line| line.purpose() == Purpose::Action && line.text.is_some() && !line.is_taken_back;
            let next = self.lines.iter().zip(&replayed.lines).position(|(line, done)| is_relevant(line) && !done);
            if let Some(done) = next.and_then(|next| replayed.lines.get_mut(next)) {
                *done = true;
            }
        }
    }

    fn replayed(&self) -> MutexGuard<'_, Replayed> {
        self.replayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded call for this request, and its index in the recording.
    fn find(&self, request: &ModelRequest) -> Result<(usize, &Line), ModelError> {
        let task = &request.task;
        let missing = |help: Message| ModelError::NoReply { key: describe(task), help };
        if self.matching == ReplayMatching::Order {
            let key = (task.purpose, task.action_id.clone());
            let done = self.replayed().counts.get(&key).copied().unwrap_or(0);
            let matches_action =
                |line: &Line| !line.is_taken_back && line.purpose() == task.purpose && line.action_id == task.action_id;
            let candidates = || self.lines.iter().enumerate().filter(|(_, line)| matches_action(line));
            // A failed call from which the turn recovered fails again; otherwise it would get the reply of another turn.
            let replies_before = |index: usize| {
                candidates().take_while(move |(at, _)| *at < index).filter(|(_, line)| line.text.is_some())
            };
            let is_recovered = |(index, line): &(usize, &Line)| {
                line.went_on
                    && (line.round, line.call) == (task.round, task.call)
                    && replies_before(*index).count() == done
            };
            if let Some((_, line)) = candidates().find(is_recovered) {
                return Err(self.recorded_failure(task, line));
            }
            return candidates().filter(|(_, line)| line.text.is_some()).nth(done).ok_or_else(|| {
                missing(msg!("{} has {done} for `{}`", self.file, written(task.purpose, &task.action_id)))
            });
        }
        let candidates: Vec<(usize, &Line)> =
            self.lines.iter().enumerate().filter(|(_, line)| line.is_call_of(task)).collect();
        let Some((_, last)) = candidates.last() else {
            let help = msg!(
                "{} has no such exchange: the conversation took a different path or ended earlier; use `--replay-by order` to match by order",
                self.file
            );
            return Err(missing(help));
        };
        let matches_prompt = |line: &Line| {
            line.messages
                .as_ref()
                .is_none_or(|recorded| differences(recorded, &request.messages, line.mask_text()).is_none())
        };
        // Of several calls with the same prompt, the last one counts; the earlier ones failed.
        let done = |index: usize| self.replayed().lines.get(index).copied().unwrap_or_default();
        let is_next = |(index, line): &&(usize, &Line)| line.has_masked_path() && !done(*index) && matches_prompt(line);
        // A person who takes the same answer back again gets the same replies as before.
        let found = [false, true].into_iter().find_map(|is_taken_back| {
            let mut among = candidates.iter().filter(|(_, line)| line.is_taken_back == is_taken_back);
            let next = among.clone().find(is_next);
            next.or_else(|| among.rfind(|(_, line)| matches_prompt(line)))
        });
        if let Some((index, line)) = found {
            return match &line.text {
                Some(_) => Ok((*index, line)),
                None => Err(self.recorded_failure(task, line)),
            };
        }
        let has_same_length =
            |line: &Line| line.messages.as_ref().is_some_and(|recorded| recorded.len() == request.messages.len());
        let closest = candidates.iter().rev().map(|(_, line)| *line).find(|line| has_same_length(line)).unwrap_or(last);
        let recorded = closest.messages.as_deref().unwrap_or_default();
        let diff = differences(recorded, &request.messages, closest.mask_text()).unwrap_or_default();
        Err(ModelError::Differs { key: describe(task), file: self.file.clone(), diff })
    }

    fn recorded_failure(&self, task: &Task, line: &Line) -> ModelError {
        let error = line.error.clone().unwrap_or_default();
        ModelError::RecordedFailure { key: describe(task), file: self.file.clone(), error }
    }

    /// Delays the reply to a background call until the action calls recorded before it are replayed.
    async fn wait_for_earlier_actions(&self, index: usize) {
        let earlier_actions_are_done = || {
            let replayed = self.replayed();
            let mut earlier = self.lines.iter().zip(&replayed.lines).take(index);
            earlier.all(|(line, done)| {
                *done || line.text.is_none() || line.is_taken_back || line.purpose() != Purpose::Action
            })
        };
        let mut is_waiting = false;
        loop {
            let progress = self.progress.notified();
            if earlier_actions_are_done() {
                break;
            }
            if !is_waiting {
                self.replayed().waiting += 1;
                is_waiting = true;
            }
            progress.await;
        }
        if is_waiting {
            let mut replayed = self.replayed();
            replayed.waiting = replayed.waiting.saturating_sub(1);
        }
    }

    /// The recorded reply.
    async fn replay(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let (index, line) = self.find(request)?;
        let purpose = request.task.purpose;
        if purpose != Purpose::Action && self.matching == ReplayMatching::Prompt {
            self.wait_for_earlier_actions(index).await;
        }
        let waiting = {
            let mut replayed = self.replayed();
            *replayed.counts.entry((purpose, request.task.action_id.clone())).or_default() += 1;
            if let Some(done) = replayed.lines.get_mut(index) {
                *done = true;
            }
            replayed.waiting
        };
        self.progress.notify_waiters();
        if purpose == Purpose::Action {
            // Lets the background calls that wait for this call finish first.
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
            finish_reason: line.finish_reason.clone(),
            refused: line.refusal,
            ..ModelReply::default()
        })
    }
}

/// The relevant exchanges: of several calls with the same prompt, as in a repeated turn, the last one; a failed call only if no such
/// call follows it.
fn relevant_lines(lines: Vec<Line>) -> Vec<Line> {
    let mut calls: HashMap<(Purpose, String, u32, u32), Vec<usize>> = HashMap::new();
    let mut is_relevant = vec![true; lines.len()];
    for (index, line) in lines.iter().enumerate() {
        let instance = line.path.clone().unwrap_or_else(|| line.action_id.clone());
        let earlier_calls = calls.entry((line.purpose(), instance, line.round, line.call)).or_default();
        for earlier in earlier_calls.iter() {
            let is_same = lines
                .get(*earlier)
                .is_some_and(|earlier| earlier.is_same_call(line) && (earlier.is_taken_back || !line.is_taken_back));
            if let Some(is_relevant) = is_relevant.get_mut(*earlier).filter(|_| is_same) {
                *is_relevant = false;
            }
        }
        earlier_calls.push(index);
    }
    lines.into_iter().zip(is_relevant).filter_map(|(line, is_relevant)| is_relevant.then_some(line)).collect()
}

#[async_trait]
impl Provider for Recording {
    fn name(&self) -> &str {
        NAME
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        let has_reply = |line: &Line| line.purpose() == purpose && line.action_id == action_id && line.text.is_some();
        purpose == Purpose::Action || self.lines.iter().any(has_reply)
    }

    fn reply_policy_for(&self, task: &Task) -> ReplyPolicy {
        let of_action = |line: &&Line| line.purpose() == task.purpose && line.action_id == task.action_id;
        let line =
            self.lines.iter().rev().find(|line| line.is_call_of(task)).or_else(|| self.lines.iter().find(of_action));
        line.map(|line| ReplyPolicy { repair: line.repair, reask: line.reask }).unwrap_or_default()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        local_call(NAME, &request.task, self.replay(request, live)).await
    }
}

#[cfg(test)]
mod tests;
