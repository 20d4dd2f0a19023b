//! The frames of a session: its position, as a tree keyed by instance path. Each frame is stored as one row.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::task::TASK_BLOCK;
use crate::program::analysis::UsedAdvice;
use crate::program::decision::GivenDecision;
use crate::program::flow::{BranchBlock, OpenEffect};
use crate::program::orchestration::plans::Plans;
use crate::program::outcome::Outcome;
use crate::run::branch_state::{BranchRules, BranchState};
use crate::run::insertion::Insertion;
use crate::run::monitors::{Advice, TrendPoint};
use crate::run::time::TopicTime;
use crate::run::topic_exit::TopicExit;
use bcc_lang::value::exact::ExactValue;
use bcc_store::rows::FrameRow;

/// The key of the frame of the session itself.
pub const ROOT: &str = "";

/// Marks the block of an action in a key; ids cannot contain it.
pub(crate) const BLOCK: char = '=';

/// Marks an insertion in a key; ids cannot contain it.
const INSERTED: char = '+';

/// Separates the id of a topic from the element that it runs for; ids cannot contain it.
pub const ELEMENT: char = '@';

/// What a frame represents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FrameTarget {
    /// The session: its children are phases.
    #[default]
    Session,
    /// A phase: its children are topics.
    Phase,
    /// A topic: its children are actions.
    Topic,
    /// A block inside an action, by the action's name for it: its children are actions.
    Block(String),
    /// A skill, by its id, with its own scope: its children are actions.
    Skill(String),
    /// One inserted action of the script, by its id: its only child.
    Single(String),
    Action,
    /// The `finally` of a topic: its children are actions.
    Finally,
    /// The `compensate` of an action: its children are actions.
    Compensation,
}

/// Where an answer that triggers hold back stands, and which triggers fired for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldAt {
    /// The number of messages until the answer.
    pub messages: u64,
    /// The number of answers until then, with it.
    pub answers: u64,
    pub triggers: Vec<String>,
}

/// An answer that was held back, for the turn that takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldAnswer {
    pub text: String,
    /// Unknown if an earlier release held it back.
    pub at: Option<HeldAt>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub at: FrameTarget,
    /// The index of the next or running child, if it has children.
    #[serde(default)]
    pub next: usize,
    /// The state of its action between turns.
    #[serde(default, skip_serializing_if = "is_null")]
    pub state: ExactValue,
    /// The round of its action, if it counts rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Model calls of its action in earlier turns and visits.
    #[serde(default)]
    pub calls: u32,
    /// Consecutive turns without a wait.
    #[serde(default)]
    pub again: u32,
    /// Of a block: the outcome of its last action so far. Of an action: that of the block it entered, or its own while an insertion
    /// runs after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Box<Outcome>>,
    /// Of an action: how often a route restarted it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// Of an action: the answer that was held back when a trigger fired; its next turn takes it. Of the session: the answer that a trigger
    /// took along to the target of its `goto`; the first action that listens takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// About the answer that is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_at: Option<HeldAt>,
    /// Of an action: whether something else ran since its last turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Of an action: whether it has not started, because its condition is false or could not be evaluated.
    #[serde(default, rename = "barred", skip_serializing_if = "std::ops::Not::not")]
    pub not_started: bool,
    /// Of an action: what was decided about its request, for its next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<GivenDecision>>,
    /// Of a list of actions: how often each of them was pushed back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub push_backs: BTreeMap<String, u32>,
    /// Of an action: the external effect that it announced and that is not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<OpenEffect>,
    /// Of an action: how its branches run, while they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<Box<BranchRules>>,
    /// Of a block that runs at the same time as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Box<BranchState>>,
    /// Of an action in a branch: the id of the request that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Of a skill or single action: why it was inserted, and what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insertion: Option<Insertion>,
    /// Of a skill that an action called: the part of the action that did, from 1. 0 if each call counts for itself, as in sessions of
    /// earlier releases.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u32,
    /// Of a topic or skill: a monitor's advice that waits for the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Box<Advice>>,
    /// Of a topic or skill: the newest advice that was used, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_advice: Vec<UsedAdvice>,
    /// Of a topic or skill: the trend of the newest metrics about the person, the newest last.
    #[serde(default, rename = "moods", skip_serializing_if = "Vec::is_empty")]
    pub trend: Vec<TrendPoint>,
    /// Of a topic or skill: the last analyzed metrics of each action, as a digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub analysed: BTreeMap<String, u64>,
    /// Of a topic: the plans that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<Box<Plans>>,
    /// Of a topic: whether its `finally` has started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finally_begun: bool,
    /// Of a `compensate`: the path of the variables of the branch in which its action ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_path: Option<String>,
    /// Of a `finally`: where the session continues after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<TopicExit>,
    /// Of a phase: the number of elements processed for its topic `next`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub taken: u32,
    /// Of a phase: the number of routes that were counted when its topic `next` began with its first element.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// Of a phase: the time of its topic `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TopicTime>,
}

impl Frame {
    /// What determines the position of the frames below it, and their variables. Nothing else in it runs again.
    pub(crate) fn position_only(&self) -> Self {
        Self {
            at: self.at.clone(),
            next: self.next,
            insertion: self.insertion.clone(),
            part: self.part,
            plans: self.plans.clone(),
            taken: self.taken,
            finally_begun: self.at == FrameTarget::Topic,
            ..Self::default()
        }
    }

    /// The answer that is held back here.
    pub(crate) fn held_answer(&self) -> Option<HeldAnswer> {
        Some(HeldAnswer { text: self.held.clone()?, at: self.held_at.clone() })
    }

    pub(crate) fn hold_answer(&mut self, answer: Option<HeldAnswer>) {
        (self.held, self.held_at) = answer.map_or((None, None), |answer| (Some(answer.text), answer.at));
    }

    pub(crate) fn triggered(&self) -> bool {
        matches!(self.insertion, Some(Insertion::Triggered { .. }))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_null(value: &Value) -> bool {
    value.is_null()
}

/// All frames of a session, and which of them changed since they were last stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    frames: BTreeMap<String, Frame>,
    changed: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// External effects that were open when their frames were removed.
    abandoned: Vec<OpenEffect>,
    /// Requests that were open when their frames were removed.
    withdrawn: Vec<String>,
    /// The actions whose branches run.
    parallel: BTreeSet<String>,
    /// The branch that the session works in; none outside of branches.
    focus: Option<String>,
}

impl Frames {
    pub(crate) fn new() -> Self {
        let mut frames = Self::default();
        frames.put(ROOT.to_owned(), Frame::default());
        frames
    }

    /// Reads stored frames.
    /// Errors: A message with the key of the row that cannot be read.
    pub(crate) fn from_rows(rows: &[FrameRow]) -> Result<Self, Message> {
        let mut frames = Self::default();
        for row in rows {
            let frame = serde_json::from_str(&row.state).map_err(|error| msg!("frame `{}`: {error}", row.key))?;
            frames.insert(row.key.clone(), frame);
        }
        Ok(frames)
    }

    fn insert(&mut self, key: String, frame: Frame) -> Option<Frame> {
        match frame.branches {
            Some(_) => self.parallel.insert(key.clone()),
            None => self.parallel.remove(&key),
        };
        self.frames.insert(key, frame)
    }

    /// Starts or ends the branches of the action `key`.
    pub(crate) fn set_branches(&mut self, key: &str, branches: Option<BranchRules>) {
        let Some(frame) = self.frames.get_mut(key) else { return };
        match branches {
            Some(_) => self.parallel.insert(key.to_owned()),
            None => self.parallel.remove(key),
        };
        frame.branches = branches.map(Box::new);
        self.changed.insert(key.to_owned());
    }

    /// The actions below `key`, itself included, whose branches run, outermost first.
    pub(crate) fn parallel_within(&self, key: &str) -> Vec<String> {
        let within = |found: &&String| found.as_str() == key || is_below(found, key);
        self.parallel.iter().filter(within).cloned().collect()
    }

    pub(crate) fn focus(&self) -> Option<&str> {
        self.focus.as_deref()
    }

    /// Moves to another branch. Returns the one before.
    pub(crate) fn set_focus(&mut self, focus: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.focus, focus)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Frame> {
        self.frames.get(key)
    }

    pub(crate) fn change(&mut self, key: &str) -> Option<&mut Frame> {
        let frame = self.frames.get_mut(key)?;
        self.changed.insert(key.to_owned());
        Some(frame)
    }

    pub(crate) fn put(&mut self, key: String, frame: Frame) {
        self.removed.remove(&key);
        self.changed.insert(key.clone());
        if let Some(replaced) = self.insert(key, frame) {
            self.left(replaced.effect, replaced.request);
        }
    }

    /// Keeps what was open in a frame that does not exist any more.
    fn left(&mut self, effect: Option<OpenEffect>, request: Option<String>) {
        self.abandoned.extend(effect);
        self.withdrawn.extend(request);
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Frame> {
        self.changed.remove(key);
        self.removed.insert(key.to_owned());
        self.parallel.remove(key);
        let frame = self.frames.remove(key)?;
        self.left(frame.effect.clone(), frame.request.clone());
        Some(frame)
    }

    /// Takes the requests that were open when their frames were removed or replaced since the last call.
    pub(crate) fn take_withdrawn(&mut self) -> Vec<String> {
        std::mem::take(&mut self.withdrawn)
    }

    /// The requests of branches that are open, with the keys of their actions.
    pub(crate) fn open_requests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.frames.iter().filter_map(|(key, frame)| Some((key.as_str(), frame.request.as_deref()?)))
    }

    /// The keys of the actions whose requests were decided, and which have not had their turns.
    pub(crate) fn decided(&self) -> impl Iterator<Item = &str> {
        self.frames.iter().filter(|(_, frame)| frame.decision.is_some()).map(|(key, _)| key.as_str())
    }

    /// Takes the external effects that were open when their frames were removed or replaced since the last call.
    pub(crate) fn take_abandoned(&mut self) -> Vec<OpenEffect> {
        std::mem::take(&mut self.abandoned)
    }

    /// Takes all open external effects.
    pub(crate) fn take_open(&mut self) -> Vec<OpenEffect> {
        let open = self.frames.iter_mut().filter_map(|(key, frame)| Some((key, frame.effect.take()?)));
        open.map(|(key, effect)| {
            self.changed.insert(key.clone());
            effect
        })
        .collect()
    }

    pub(crate) fn open_effects(&self) -> impl Iterator<Item = &OpenEffect> {
        self.frames.values().filter_map(|frame| frame.effect.as_ref())
    }

    /// The keys of all frames below `key`, innermost first.
    pub(crate) fn below(&self, key: &str) -> Vec<String> {
        let is_inside = |other: &&String| is_below(other, key);
        self.frames.keys().rev().filter(is_inside).cloned().collect()
    }

    /// The key of the innermost frame: of the branch that the session works in, or outside of branches. An action whose branches run is
    /// innermost there, unless something is inserted below it. Apart from branches the frames form one chain, in which the longest key is also the last.
    pub(crate) fn leaf(&self) -> String {
        let focus = self.focus.as_deref();
        let last = match focus {
            None => self.frames.keys().next_back(),
            // `0` follows `/`, so this is what lies below.
            Some(focus) => self.frames.range(format!("{focus}/")..format!("{focus}0")).next_back().map(|(key, _)| key),
        };
        let mut last = last.map_or(focus.unwrap_or(ROOT), String::as_str);
        if self.parallel.is_empty() {
            return last.to_owned();
        }
        let mut above = focus;
        loop {
            let inside = |key: &&str| above.is_none_or(|above| is_below(key, above));
            let branching = lineage(last).filter(inside).find(|key| self.parallel.contains(*key));
            let Some(branching) = branching else { return last.to_owned() };
            // What was inserted before the branches have started runs first.
            let Some(inserted) = self.last_inserted(branching) else { return branching.to_owned() };
            (above, last) = (Some(branching), inserted);
        }
    }

    /// The last frame of what is inserted below the action `key` itself, and not in one of its blocks.
    fn last_inserted(&self, key: &str) -> Option<&str> {
        // `,` follows the mark of insertions.
        let inserted = self.frames.range(format!("{key}/{INSERTED}")..format!("{key}/,"));
        inserted.map(|(key, _)| key.as_str()).next_back()
    }

    /// Keeps which part of the action `key` called the skill that is inserted below it.
    pub(crate) fn set_part(&mut self, key: &str, part: u32) {
        let inserted = self.last_inserted(key).map(str::to_owned);
        if let Some(frame) = inserted.filter(|_| part > 0).and_then(|key| self.change(&key)) {
            frame.part = part;
        }
    }

    /// The key of the frame of the action with this public path.
    pub(crate) fn action_at(&self, path: &str) -> Option<&str> {
        let mut actions = self.frames.iter().filter(|(_, frame)| frame.at == FrameTarget::Action);
        actions.find(|(key, _)| public_path(key) == path).map(|(key, _)| key.as_str())
    }

    /// The changes since the last call, as rows.
    pub(crate) fn take_changes(&mut self) -> Result<(Vec<FrameRow>, Vec<String>), serde_json::Error> {
        let mut put = Vec::with_capacity(self.changed.len());
        for key in std::mem::take(&mut self.changed) {
            if let Some(frame) = self.frames.get(&key) {
                put.push(FrameRow { state: serde_json::to_string(frame)?, key });
            }
        }
        Ok((put, std::mem::take(&mut self.removed).into_iter().collect()))
    }
}

pub fn child(parent: &str, component: &str) -> String {
    if parent == ROOT { component.to_owned() } else { format!("{parent}/{component}") }
}

/// The keys of the frames from the phase down to the frame `key` itself; none for the root.
pub(crate) fn lineage(key: &str) -> impl Iterator<Item = &str> {
    let ends = key.match_indices('/').map(|(end, _)| end).chain([key.len()]);
    ends.filter_map(|end| key.get(..end)).filter(|key| *key != ROOT)
}

pub fn component(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, component)| component)
}

pub(crate) fn block_component(block: &str) -> String {
    format!("{BLOCK}{block}")
}

/// The key of the frame of a branch of the action `action`.
pub(crate) fn branch_key(action: &str, branch: &BranchBlock) -> String {
    child(action, &block_component(&branch.block))
}

/// The component of an insertion: its id, and the number of the visit if it is not the first.
pub(crate) fn inserted_component(id: &str, visit: u64) -> String {
    if visit <= 1 { format!("{INSERTED}{id}") } else { format!("{INSERTED}{id}#{visit}") }
}

/// Whether this is the component of an insertion.
pub(crate) fn is_inserted(component: &str) -> bool {
    component.starts_with(INSERTED)
}

/// The component of a topic that runs for one element of a list.
pub(crate) fn element_component(topic: &str, element: &str) -> String {
    format!("{topic}{ELEMENT}{element}")
}

/// The id in a component of a key, without visit and element.
pub fn id_of(component: &str) -> &str {
    component.trim_start_matches(INSERTED).split(['#', ELEMENT]).next().unwrap_or_default()
}

/// Whether the frame `key` is a descendant of the frame `above`.
pub(crate) fn is_below(key: &str, above: &str) -> bool {
    if above == ROOT {
        return key != ROOT;
    }
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// The key of the parent; that of the root for the root.
pub fn parent(key: &str) -> &str {
    key.rsplit_once('/').map_or(ROOT, |(parent, _)| parent)
}

/// The instance path in events: without the phase and the names of blocks.
pub(crate) fn public_path(key: &str) -> String {
    // An insertion after the last phase belongs to no phase.
    let phases = usize::from(!key.starts_with(INSERTED));
    // The blocks of tasks are shown: they contain the same action.
    let is_shown = |part: &&str| part.strip_prefix(BLOCK).is_none_or(|block| block.starts_with(TASK_BLOCK));
    let mut path = String::with_capacity(key.len());
    for (number, part) in key.split('/').skip(phases).filter(is_shown).enumerate() {
        if number > 0 {
            path.push('/');
        }
        path.push_str(part.trim_start_matches([INSERTED, BLOCK]));
    }
    path
}

/// A key for messages, without list elements, which may contain text of a person.
pub(crate) fn redacted_key(key: &str) -> String {
    let parts = key.split('/').map(|part| part.split_once(ELEMENT).map_or(part, |(id, _)| id));
    parts.collect::<Vec<_>>().join("/")
}

/// The path of the variables of a skill. After the last phase a skill could have the name of a topic.
pub(crate) fn skill_path(key: &str) -> String {
    if key.starts_with(INSERTED) { key.to_owned() } else { public_path(key) }
}
