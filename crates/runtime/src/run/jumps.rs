//! Jumps of routes and conditions: to a topic, to a phase, or to an action of a list around the jump (docs/routes.md).

use bcc_lang::message::msg;

use crate::program::event::Event;
use crate::program::program::Program;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, ROOT, lineage, parent};
use crate::run::session::Session;
use crate::run::topic_exit::TopicExit;
use crate::run::transitions::SessionFailure;

impl Session {
    /// Jumps from the frame `key` to the topic, the phase or the action `target`. Topics and phases take precedence, but not in a skill,
    /// whose author does not know those of the script.
    pub(crate) fn jump(
        &mut self,
        program: &Program,
        key: &str,
        target: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if let Some((list, index)) = self.list_for(program, key, target) {
            self.unwind(&list);
            if let Some(frame) = self.frames.change(&list) {
                frame.next = index;
            }
            return Ok(());
        }
        if let Some((phase, topic)) = part_with(program, target) {
            if self.enter_finally(program, TopicExit::Goto(target.to_owned())) {
                return Ok(());
            }
            return self.jump_to_part(program, phase, topic, draft);
        }
        // The topic was not entered, a plan removed the action, or a route of an inserted action was written for another topic.
        self.report_out_of_reach(key, target, draft);
        if self.is_container(key) {
            self.next_child(key);
            return Ok(());
        }
        let outcome = self.frames.get(key).and_then(|frame| frame.last.as_deref().cloned());
        self.finish_action(key, &outcome.unwrap_or_default());
        Ok(())
    }

    /// Whether a jump from the frame `key` reaches the topic, the phase or the action `target`. If not, this is reported.
    pub(crate) fn reaches(&self, program: &Program, key: &str, target: &str, draft: &mut CommitDraft) -> bool {
        let reaches = part_with(program, target).is_some() || self.list_with(program, key, target).is_some();
        if !reaches {
            self.report_out_of_reach(key, target, draft);
        }
        reaches
    }

    fn report_out_of_reach(&self, key: &str, target: &str, draft: &mut CommitDraft) {
        let message =
            msg!("`{target}` is not an action of the current topic, so the session continues with the next one");
        draft.event(&self.place_of(key), Event::Error { code: "goto-out-of-reach", message, help: None });
    }

    /// Jumps to the topic or the phase `target`, from any position. A trigger belongs to the script, wherever it fires.
    pub(crate) fn jump_from_trigger(
        &mut self,
        program: &Program,
        target: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let Some((phase, topic)) = part_with(program, target) else {
            let message = msg!("there is no topic or phase `{target}`");
            return Err(SessionFailure { code: "frame-unreadable", message, help: None });
        };
        if self.enter_finally(program, TopicExit::Goto(target.to_owned())) {
            return Ok(());
        }
        self.jump_to_part(program, phase, topic, draft)
    }

    /// The list of actions around the frame `key` in which a jump to `target` stays, and the index of the action there; none if it
    /// leads to a topic or a phase, or nowhere.
    pub(crate) fn list_for(&self, program: &Program, key: &str, target: &str) -> Option<(String, usize)> {
        let found = self.list_with(program, key, target)?;
        (self.is_in_skill(key) || part_with(program, target).is_none()).then_some(found)
    }

    /// The innermost list of actions around the frame `key` that contains the action `id`, by the key of its frame, and the index of the
    /// action. Nothing in a skill, a `finally` or a `compensate` reaches the lists outside it.
    pub(crate) fn list_with(&self, program: &Program, key: &str, id: &str) -> Option<(String, usize)> {
        let lists: Vec<&str> = lineage(parent(key)).collect();
        for list in lists.into_iter().rev() {
            let steps = self.steps_of(program, list).unwrap_or_default();
            if let Some(index) = steps.iter().position(|step| step.id == id) {
                return Some((list.to_owned(), index));
            }
            let is_skill = self.frames.get(list).is_none_or(|frame| matches!(frame.at, FrameTarget::Skill(_)));
            if is_skill || self.is_cleanup(list) {
                return None;
            }
        }
        None
    }

    /// The key of the topic of a skill that contains the action `key`, within the innermost skill.
    pub(crate) fn skill_topic_around(&self, program: &Program, key: &str) -> Option<String> {
        let around: Vec<&str> = lineage(parent(key)).collect();
        for key in around.into_iter().rev() {
            match self.frames.get(key)?.at {
                FrameTarget::Block(_) => {
                    let topic = parent(key);
                    if self.position(program, topic).is_some_and(|position| position.step.action.topic().is_some()) {
                        return Some(topic.to_owned());
                    }
                }
                FrameTarget::Action => {}
                _ => return None,
            }
        }
        None
    }

    /// Whether the author of the action `key` wrote it in a skill.
    fn is_in_skill(&self, key: &str) -> bool {
        let around: Vec<&str> = lineage(parent(key)).collect();
        let found = around.into_iter().rev().filter_map(|key| self.frames.get(key)).find_map(|frame| match &frame.at {
            FrameTarget::Skill(_) => Some(true),
            FrameTarget::Single(_) if frame.triggered() => Some(false),
            _ => None,
        });
        found.unwrap_or(false)
    }

    /// Jumps to a phase, or to a topic of it, by their numbers.
    fn jump_to_part(
        &mut self,
        program: &Program,
        phase: usize,
        topic: Option<usize>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let current = self.frames.get(ROOT).map(|root| root.next);
        let leaf = self.frames.leaf();
        let open = lineage(&leaf).next().map(str::to_owned);
        let open = open.filter(|key| self.frames.get(key).is_some_and(|frame| frame.at == FrameTarget::Phase));
        let stays = open.filter(|_| current == Some(phase) && topic.is_some());
        match &stays {
            Some(key) => self.unwind(key),
            None => self.unwind(ROOT),
        }
        if let Some(root) = self.frames.change(ROOT) {
            root.next = phase;
        }
        let Some(topic) = topic else { return Ok(()) };
        let key = match stays {
            Some(key) => key,
            None => {
                let Some(phase) = program.phases.get(phase) else { return Ok(()) };
                self.enter_phase(phase, draft)?
            }
        };
        if let Some(frame) = self.frames.change(&key) {
            frame.next = topic;
            frame.taken = 0;
        }
        Ok(())
    }
}

/// The phase with the id `target`, or the topic with this id and its phase, by their numbers. Topics take precedence.
pub(crate) fn part_with(program: &Program, target: &str) -> Option<(usize, Option<usize>)> {
    let topics = program.phases.iter().enumerate().find_map(|(number, phase)| {
        phase.topics.iter().position(|topic| topic.id == target).map(|topic| (number, Some(topic)))
    });
    topics.or_else(|| program.phases.iter().position(|phase| phase.id == target).map(|number| (number, None)))
}
