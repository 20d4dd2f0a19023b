//! What ran before the session of a state file began: where it starts, what it passes over, and what may have been interrupted
//! (docs/workflows.md).

use bcc_lang::message::msg;

use crate::program::event::Event;
use crate::program::flow::OpenEffect;
use crate::program::program::{Program, ProgramStep, Topic};
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, lineage, parent, public_path};
use crate::run::session::Session;

impl Session {
    /// Moves the frame of a topic that was just entered to the step where the session begins.
    pub(crate) fn start_at_step(&mut self, topic: &Topic, key: &str) {
        let start = self.program.earlier.start.as_deref();
        let position = start.and_then(|start| topic.steps.iter().position(|step| step.id == start));
        if let (Some(position), Some(frame)) = (position, self.frames.change(key)) {
            frame.next = position;
        }
    }

    /// Whether a step was done before the session began, and is reached for the first time. It is reported as skipped. A later visit,
    /// which a route leads to, runs it again.
    pub(crate) fn passes_over(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        draft: &mut CommitDraft,
    ) -> bool {
        let is_done = program.earlier.done.contains(&step.id) && self.is_of_file(key);
        if !is_done || !self.is_first_entry(&step.id, draft) {
            return false;
        }
        let mut place = self.place_of(parent(key));
        place.action_id = Some(step.id.clone());
        place.round = None;
        place.path = public_path(key);
        let why = msg!("it was done before this session began");
        draft.event(&place, Event::Skipped { name: step.id.clone(), why, skipped: None });
        true
    }

    /// Goes from a step that is passed over to the one that follows it.
    pub(crate) fn follow_earlier(&mut self, program: &Program, step: &ProgramStep, container: &str) {
        let Some(follower) = program.earlier.followers.get(&step.id) else { return self.next_child(container) };
        let steps = self.steps_of(program, container).unwrap_or_default();
        let place = follower.as_ref().and_then(|next| steps.iter().position(|step| step.id == *next));
        let place = place.unwrap_or(steps.len());
        if let Some(frame) = self.frames.change(container) {
            frame.next = place;
            frame.taken = 0;
        }
    }

    /// Opens the effect of an action that was running before the session began, when it is entered for the first time. `on_interrupted`
    /// then decides, as for an effect that was open when the session is resumed.
    pub(crate) fn open_earlier_effect(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        draft: &mut CommitDraft,
    ) {
        let is_interrupted = program.earlier.interrupted.contains(&step.id) && self.is_of_file(key);
        if !is_interrupted || !self.is_first_entry(&step.id, draft) {
            return;
        }
        let effect_id = format!("e{}", self.last_seq + 1 + draft.events.len() as u64);
        let summary = msg!("`{}`: it was running before this session began", step.id);
        let kind = step.kind.to_owned();
        let place = self.place_of(key);
        let Some(frame) = self.frames.change(key) else { return };
        frame.effect = Some(OpenEffect {
            id: effect_id.clone(),
            kind: kind.clone(),
            summary: summary.clone(),
            answer: None,
            is_earlier: false,
            code: None,
        });
        draft.event(&place, Event::EffectStarted { effect_id, kind, summary });
    }

    /// Whether an action is a step or a sub task of the file. The actions of a skill or a compensation have ids of their own.
    fn is_of_file(&self, key: &str) -> bool {
        let is_called = |key: &str| {
            let at = self.frames.get(key).map(|frame| &frame.at);
            matches!(
                at,
                Some(FrameTarget::Skill(_) | FrameTarget::Single(_) | FrameTarget::Finally | FrameTarget::Compensation)
            )
        };
        !lineage(parent(key)).any(is_called)
    }

    fn is_first_entry(&mut self, id: &str, draft: &mut CommitDraft) -> bool {
        let name = format!("entered:{id}");
        if self.counters.contains_key(&name) {
            return false;
        }
        self.counters.insert(name.clone(), 1);
        draft.counters.push((name, 1));
        true
    }
}
