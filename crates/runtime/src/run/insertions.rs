//! Insertions: skills that an action calls, and skills or actions that a route or a trigger inserts.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::program::decision::NOT_APPROVED;
use crate::program::evaluation::MISTAKEN_EXPRESSION;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Program, Skill};
use crate::program::turn::fitting;
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, FrameTarget, child, inserted_component, lineage, parent, skill_path};
use crate::run::insertion::Insertion;
use crate::run::position::single;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::{Scope, ScopeLayer, Scopes, Stored};

/// The maximum nesting depth of insertions, including called skills.
const MAX_INSERTIONS: usize = 16;

impl Session {
    /// Inserts the skill or the action `id` below the frame `key`: it runs next, followed by what `insertion` defines.
    pub(crate) fn insert(
        &mut self,
        program: &Program,
        key: &str,
        id: &str,
        insertion: Insertion,
        inputs: ExactValues,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        // Triggers exist for a person's safety and may insert at any depth; a trigger cannot fire inside itself, which limits the depth.
        let triggered = matches!(insertion, Insertion::Triggered { .. });
        let outside = matches!(insertion, Insertion::Triggered { outside: true, .. });
        if !triggered && let Some(error) = self.too_deep(key, id) {
            return Err(error);
        }
        let count = self.count_visit("skill", id, draft);
        let inserted_key = child(key, &inserted_component(id, count));
        let frame = |at| Frame { at, insertion: Some(insertion.clone()), ..Frame::default() };
        if let Some(skill) = program.skills.get(id) {
            let inputs = fitting_inputs(skill, inputs)?;
            self.frames.put(inserted_key.clone(), frame(FrameTarget::Skill(id.to_owned())));
            return self.enter_skill(skill, &inserted_key, inputs, draft);
        }
        // A trigger belongs to the script, wherever it fires.
        let skill = self.skill_of(program, key).filter(|_| !matches!(insertion, Insertion::Triggered { .. }));
        if single(program, skill, id).is_some() {
            self.frames.put(inserted_key, frame(FrameTarget::Single(id.to_owned())));
            if outside && let Some(script) = self.outer.first_mut() {
                std::mem::swap(&mut self.scopes, script);
            }
            return Ok(());
        }
        Err(SessionFailure {
            code: "frame-unreadable",
            message: msg!("there is no skill or action `{id}`"),
            help: None,
        })
    }

    /// Why `id` cannot be inserted below the frame `key`: too many skills are nested there.
    fn too_deep(&self, key: &str, id: &str) -> Option<SessionFailure> {
        let inserted = |key: &&str| self.frames.get(key).is_some_and(|frame| frame.insertion.is_some());
        if lineage(key).filter(inserted).count() < MAX_INSERTIONS {
            return None;
        }
        let message = msg!("`{id}` cannot run: {MAX_INSERTIONS} skills are already nested");
        let help = "skills that call each other must end at some point: add a condition to one of them";
        Some(SessionFailure { code: "too-deep", message, help: Some(help.into()) })
    }

    /// What a route from the frame `key` inserts. None if it cannot run there, which is reported: how often a route is taken, nobody could
    /// know when the script was checked, and the session goes where it would go without the insertion.
    pub(crate) fn insertable(
        &self,
        key: &str,
        id: Option<String>,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> Option<String> {
        let id = id?;
        let Some(SessionFailure { code, message, help }) = self.too_deep(key, &id) else { return Some(id) };
        draft.event(place, Event::Error { code, message, help });
        None
    }

    /// Opens the scope of a skill: its inputs, and nothing from outside.
    fn enter_skill(
        &mut self,
        skill: &Skill,
        key: &str,
        inputs: ExactValues,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let mut layer = self.fresh_layer(Scope::Topic, skill_path(key), &skill.inputs, draft)?;
        let at = self.services.clock.at(self.last_seq + 1);
        let place = self.place_of(key);
        let source = place.action_id.clone().unwrap_or_default();
        let unwritable = |error: serde_json::Error| SessionFailure::new(error.to_message());
        for (name, value) in inputs {
            let sensitive = layer.declaration(&name).is_some_and(|declaration| declaration.sensitive);
            if sensitive {
                self.hide(&value, draft).map_err(unwritable)?;
            }
            let shown = if sensitive { Value::from(MASK).into() } else { value.clone() };
            let stored = Stored { value, source: source.clone(), round: None, at: at.clone() };
            draft.variable(Scope::Topic, &layer.path, &name, &stored, sensitive).map_err(unwritable)?;
            let source = source.clone();
            let event = Event::VariableSet { name: name.clone(), scope: Scope::Topic.name(), value: shown, source };
            draft.event(&place, event);
            layer.put(name, stored);
        }
        self.give_bound_plan(&mut layer, draft).map_err(unwritable)?;
        let outer = std::mem::replace(&mut self.scopes, Scopes::isolated(layer));
        self.outer.push(outer);
        Ok(())
    }

    /// Removes the frame of an insertion, and its scope.
    pub(crate) fn leave_insertion(&mut self, key: &str) -> Option<Frame> {
        let frame = self.frames.remove(key)?;
        self.mailbox.forget(key);
        if matches!(frame.at, FrameTarget::Skill(_))
            && let Some(outer) = self.outer.pop()
        {
            self.scopes = outer;
        }
        if let Some(Insertion::Triggered { trigger, outside, .. }) = &frame.insertion {
            if *outside
                && matches!(frame.at, FrameTarget::Single(_))
                && let Some(skill) = self.outer.first_mut()
            {
                std::mem::swap(&mut self.scopes, skill);
            }
            // Answers inside it need no check: the insertion was made for them.
            let fired = self.head.fired.entry(trigger.clone()).or_default();
            fired.answers = self.answers;
        }
        Some(frame)
    }

    /// An insertion ended: its outputs are passed up, and the session continues as defined when it was inserted.
    pub(crate) fn insertion_done(
        &mut self,
        program: &Program,
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let outputs = match self.frames.get(key).map(|frame| &frame.at) {
            Some(FrameTarget::Skill(id)) => program.skills.get(id).map(|skill| self.outputs(skill)),
            _ => None,
        };
        let above = parent(key).to_owned();
        let Some(frame) = self.leave_insertion(key) else { return Ok(()) };
        match frame.insertion {
            Some(Insertion::Called) | None => {
                if let Some(action) = self.frames.change(&above) {
                    let extracted_variables = outputs.unwrap_or_default();
                    let outcome = Outcome { extracted_variables, ..Outcome::done(ExitReason::ExitCriteriaMet) };
                    action.last = Some(Box::new(outcome));
                }
                Ok(())
            }
            Some(Insertion::ByRoute { reason, completed, then, failure }) => {
                self.continue_after_insertion(program, &above, (reason, completed), then, failure, draft)
            }
            Some(Insertion::Triggered { ends, goto, failure, .. }) => {
                self.trigger_done(program, &above, &Insertion::trigger_target(ends, goto), failure, draft)
            }
        }
    }

    /// An insertion failed: its parent ends with this error, or a route is searched.
    pub(crate) fn insertion_failed(
        &mut self,
        program: &Program,
        key: &str,
        error: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let above = parent(key).to_owned();
        let Some(frame) = self.leave_insertion(key) else { return Err(error) };
        match frame.insertion {
            // What needs an approval must not happen without it, and what the author must correct is not passed over.
            Some(Insertion::Called)
                if [NOT_APPROVED, MISTAKEN_EXPRESSION].contains(&error.code)
                    && !self.handles_error(program, &above) =>
            {
                match self.enclosing_insertion(&above) {
                    Some(outer) => {
                        self.unwind(&outer);
                        self.insertion_failed(program, &outer, error, draft)
                    }
                    None => Err(error),
                }
            }
            Some(Insertion::Called) | None => {
                if let Some(action) = self.frames.change(&above) {
                    action.last = Some(Box::new(Outcome::failed(&error.message)));
                }
                Ok(())
            }
            // The interrupted action is not affected: it continues, and its pending answer is not lost.
            Some(Insertion::Triggered { ends, goto, failure, .. }) => {
                let place = self.place_of(&above);
                let SessionFailure { code, message, help } = error;
                draft.event(&place, Event::Error { code, message, help });
                self.trigger_done(program, &above, &Insertion::trigger_target(ends, goto), failure, draft)
            }
            Some(Insertion::ByRoute { then, .. }) if self.is_container(&above) => {
                self.failed_before_entry(program, &above, then, error, draft)
            }
            // After the last action only the session can have a table.
            Some(Insertion::ByRoute { .. }) => {
                self.continue_after_outcome(program, &above, Outcome::failed(&error.message), Some(error), draft)
            }
        }
    }

    /// The outputs of a skill for its caller.
    fn outputs(&self, skill: &Skill) -> ExactValues {
        let output = |name: &String| Some((name.clone(), self.scopes.get(name)?.value.clone()));
        skill.outputs.iter().filter_map(output).collect()
    }
}

/// The inputs of a skill, converted to their declared types.
fn fitting_inputs(skill: &Skill, inputs: ExactValues) -> Result<ExactValues, SessionFailure> {
    let layer = ScopeLayer::new(Scope::Topic, "", Arc::clone(&skill.inputs));
    let fits = |(name, value): (String, ExactValue)| match fitting(Some(&layer), &name, value) {
        Ok(value) => Ok((name, value)),
        Err(error) => Err(SessionFailure {
            code: "type-misfit",
            message: msg!("the skill `{}` does not accept this value: {error}", skill.id),
            help: None,
        }),
    };
    inputs.into_iter().map(fits).collect()
}
