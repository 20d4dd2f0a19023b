//! The time of a session and of its topics: how it is counted, and which topics are shortened when it runs out
//! (docs/language.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};

use crate::program::event::Event;
use crate::program::limits::Priority;
use crate::program::location::EventLocation;
use crate::program::program::{Phase, Program, Topic};
use crate::program::resource::{MINUTE_MS, Resource};
use crate::run::draft::CommitDraft;
use crate::run::frames::{ROOT, lineage, parent};
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use crate::run::topic_exit::TopicExit;

/// The time of a phase's current topic, stored in the phase's frame: a topic with a list has a frame for each element, but one
/// time for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopicTime {
    /// The active milliseconds of the session when the topic was entered.
    pub since: u64,
    /// Whether each of its actions has one round.
    #[serde(default)]
    pub brief: bool,
    /// Whether the use of its time budget was reported.
    #[serde(default)]
    pub over: bool,
}

impl Session {
    /// The milliseconds until now during which a process ran this session.
    pub(crate) fn active_ms(&self) -> u64 {
        self.head.ms.saturating_add(self.services.clock.elapsed_ms().saturating_sub(self.counted_until_ms))
    }

    /// Adds the time since the last call.
    pub(crate) fn count_time(&mut self) {
        self.head.ms = self.active_ms();
        self.counted_until_ms = self.services.clock.elapsed_ms();
    }

    /// Whether a topic, or its next element, is skipped because there is no time for it.
    pub(crate) fn skips_for_time(
        &mut self,
        program: &Program,
        within: (&Phase, &Topic),
        above: &str,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> bool {
        if self.frames.get(above).is_some_and(|frame| frame.taken > 0) {
            return self.is_overdue(within.1, above, place, draft);
        }
        self.start_topic_time(program, within, above, place, draft)
    }

    /// Starts to measure the time of a topic, or of its first element. If the session has fewer minutes left than the time budgets
    /// of the topics from this one on, the topic's priority decides. Returns whether it is skipped.
    fn start_topic_time(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        above: &str,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> bool {
        let now = self.active_ms();
        let left = self.head.budget.limit(Resource::Minutes).map(|limit| limit.saturating_sub(now));
        let needed = needed_from(program, phase, topic);
        let mut time = TopicTime { since: now, ..TopicTime::default() };
        // If no time is left, the session stops before its next turn, and one with more minutes continues here; nothing must be skipped
        // by then.
        if let Some(left) = left.filter(|left| *left > 0 && *left < needed) {
            let why = msg!(
                "{} minutes are left, but the topics from `{}` on have time budgets of {} in total",
                Resource::Minutes.number(left),
                topic.id,
                Resource::Minutes.number(needed)
            );
            self.cut_short(topic, "time_short", why, place, draft);
            if topic.priority == Priority::Low {
                return true;
            }
            time.brief = topic.priority == Priority::Medium;
        }
        if let Some(frame) = self.frames.change(above) {
            frame.time = Some(time);
        }
        false
    }

    /// Whether the remaining topic is skipped because its own time budget is used up. `above` is the phase's frame.
    fn is_overdue(&mut self, topic: &Topic, above: &str, place: &EventLocation, draft: &mut CommitDraft) -> bool {
        let Some(time) = self.frames.get(above).and_then(|frame| frame.time) else { return false };
        let Some(budget) = topic.time_budget.map(|minutes| u64::from(minutes).saturating_mul(MINUTE_MS)) else {
            return false;
        };
        let used = self.active_ms().saturating_sub(time.since);
        let decided = time.over || (time.brief && topic.priority == Priority::Medium);
        if used < budget || decided {
            return false;
        }
        let why = msg!(
            "`{}` has used {} minutes, and its time budget is {}",
            topic.id,
            Resource::Minutes.number(used),
            Resource::Minutes.number(budget)
        );
        self.cut_short(topic, "time_budget", why, place, draft);
        if let Some(time) = self.frames.change(above).and_then(|frame| frame.time.as_mut()) {
            time.over = true;
            time.brief |= topic.priority == Priority::Medium;
        }
        topic.priority == Priority::Low
    }

    /// Leaves the topic `key` before its next action, with all further elements, if it is overdue. Returns whether it did.
    pub(crate) fn leave_if_overdue(&mut self, program: &Program, key: &str, draft: &mut CommitDraft) -> bool {
        let above = parent(key).to_owned();
        let next = |key: &str| self.frames.get(key).map(|frame| frame.next);
        let phase = next(ROOT).and_then(|next| program.phases.get(next));
        let Some(topic) = phase.zip(next(&above)).and_then(|(phase, next)| phase.topics.get(next)) else {
            return false;
        };
        let place = self.place_of(key);
        if !self.is_overdue(topic, &above, &place, draft) {
            return false;
        }
        if !self.enter_finally(program, TopicExit::LeaveAll) {
            self.leave(key);
            self.skip_elements(&above);
        }
        true
    }

    /// Reports how a topic is shortened for lack of time.
    fn cut_short(
        &self,
        topic: &Topic,
        reason: &'static str,
        why: Message,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) {
        let priority = topic.priority.name();
        let (route, then) = match topic.priority {
            Priority::Low => ("skip_topic", "the rest of it is skipped"),
            Priority::Medium => ("one_round", "each of its remaining actions gets one round"),
            Priority::High => ("whole", "it runs in full"),
        };
        let why = msg!("{why}; its priority is {priority}: {then}", then = Message::word(then));
        let event = Event::BudgetReached { reason, route: route.into(), from: topic.id.clone(), why: why.clone() };
        draft.event(place, event);
        if topic.priority == Priority::Low {
            draft.event(place, Event::Skipped { name: topic.id.clone(), why, skipped: None });
        }
    }

    /// The maximum number of rounds that there is time for in the action `key`. Insertions of routes and triggers are not limited:
    /// they exist for a person who needs them.
    pub(crate) fn round_limit(&self, key: &str) -> Option<u32> {
        let time = lineage(key).next().and_then(|phase| self.frames.get(phase)?.time)?;
        let is_inserted = |key: &str| {
            let insertion = self.frames.get(key).and_then(|frame| frame.insertion.as_ref());
            matches!(insertion, Some(Insertion::ByRoute { .. } | Insertion::Triggered { .. }))
        };
        (time.brief && !lineage(key).any(is_inserted)).then_some(1)
    }
}

/// The sum of the time budgets, in milliseconds, of the topics from this one to the end of the script. Conditions and routes that
/// skip some of them are not known yet.
fn needed_from(program: &Program, phase: &Phase, topic: &Topic) -> u64 {
    let phases = program.phases.iter().skip_while(|other| other.id != phase.id);
    let topics = phases.flat_map(|phase| &phase.topics).skip_while(|other| other.id != topic.id);
    topics.filter_map(|topic| topic.time_budget).map(|minutes| u64::from(minutes).saturating_mul(MINUTE_MS)).sum()
}
