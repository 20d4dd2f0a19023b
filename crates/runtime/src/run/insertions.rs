//! What is inserted: skills that an action calls, and skills or actions that a route or a trigger brings in.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::program::event::Event;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Program, Skill};
use crate::program::turn::fitting;
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, FrameTarget, Insertion, child, inserted_component, lineage, parent, skill_path};
use crate::run::position::single;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::{Scope, ScopeLayer, Scopes, Stored};

/// How deep insertions may stand in one another, called skills among them.
const MOST_INSERTIONS: usize = 16;

impl Session {
    /// Puts the skill or the action `id` below the frame `key`: it runs next, and then what `insertion` says.
    pub(crate) fn insert(
        &mut self,
        program: &Program,
        key: &str,
        id: &str,
        insertion: Insertion,
        inputs: Map<String, Value>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let inserted = |key: &&str| self.frames.get(key).is_some_and(|frame| frame.insertion.is_some());
        // What is there for a person's safety comes in however deep it is; a trigger is off inside of itself, which bounds it.
        let triggered = matches!(insertion, Insertion::Triggered { .. });
        let outside = matches!(insertion, Insertion::Triggered { outside: true, .. });
        if !triggered && lineage(key).filter(inserted).count() >= MOST_INSERTIONS {
            let message = msg!("`{id}` cannot run: {MOST_INSERTIONS} skills are already nested");
            let help = "skills that call each other must end at some point: add a condition to one of them";
            return Err(SessionFailure { code: "too-deep", message, help: Some(help.into()) });
        }
        let count = self.count_visit("skill", id, draft);
        let below = child(key, &inserted_component(id, count));
        let frame = |at| Frame { at, insertion: Some(insertion.clone()), ..Frame::default() };
        if let Some(skill) = program.skills.get(id) {
            let inputs = fitting_inputs(skill, inputs)?;
            self.frames.put(below.clone(), frame(FrameTarget::Skill(id.to_owned())));
            return self.enter_skill(skill, &below, inputs, draft);
        }
        // A trigger is the script's own, wherever it fires.
        let skill = self.skill_of(program, key).filter(|_| !matches!(insertion, Insertion::Triggered { .. }));
        if single(program, skill, id).is_some() {
            self.frames.put(below, frame(FrameTarget::Single(id.to_owned())));
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

    /// Opens the scope of a skill: its inputs, and nothing of what is outside.
    fn enter_skill(
        &mut self,
        skill: &Skill,
        key: &str,
        inputs: Map<String, Value>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let mut layer = self.fresh_layer(Scope::Topic, skill_path(key), &skill.inputs, draft)?;
        let at = self.services.clock.at(self.last_seq + 1);
        let place = self.place_of(key);
        let source = place.action_id.clone().unwrap_or_default();
        let unwritable = |error: serde_json::Error| SessionFailure::new(Message::text(error.to_string()));
        for (name, value) in inputs {
            let sensitive = layer.declaration(&name).is_some_and(|declaration| declaration.sensitive);
            if sensitive {
                self.hide(&value, draft).map_err(unwritable)?;
            }
            let shown = if sensitive { Value::from(MASK) } else { value.clone() };
            let stored = Stored { value, source: source.clone(), round: None, at: at.clone() };
            draft.variable(Scope::Topic, &layer.path, &name, &stored, sensitive).map_err(unwritable)?;
            let source = source.clone();
            let event = Event::VariableSet { name: name.clone(), scope: Scope::Topic.name(), value: shown, source };
            draft.event(&place, event);
            layer.put(name, stored);
        }
        let outside = std::mem::replace(&mut self.scopes, Scopes::isolated(layer));
        self.outer.push(outside);
        Ok(())
    }

    /// Takes away the frame of something inserted, and its scope.
    pub(crate) fn leave_insertion(&mut self, key: &str) -> Option<Frame> {
        let frame = self.frames.remove(key)?;
        self.mailbox.forget(key);
        if matches!(frame.at, FrameTarget::Skill(_))
            && let Some(outside) = self.outer.pop()
        {
            self.scopes = outside;
        }
        if let Some(Insertion::Triggered { trigger, outside, .. }) = &frame.insertion {
            if *outside
                && matches!(frame.at, FrameTarget::Single(_))
                && let Some(skill) = self.outer.first_mut()
            {
                std::mem::swap(&mut self.scopes, skill);
            }
            // What was answered inside of it was looked at: it was there for just that.
            let fired = self.head.fired.entry(trigger.clone()).or_default();
            fired.answers = self.answers;
        }
        Some(frame)
    }

    /// Something inserted came to its end: its outputs go up, and the session goes on as was said when it came in.
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
            Some(Insertion::Routed { reason, completed, then, failure }) => {
                self.go_on(program, &above, (reason, completed), then, failure, draft)
            }
            Some(Insertion::Triggered { ends, failure, .. }) => self.trigger_over(program, &above, ends, failure),
        }
    }

    /// What a trigger inserted is over: the session goes on where it was, ends, or fails with what went wrong before.
    fn trigger_over(
        &mut self,
        program: &Program,
        above: &str,
        ends: bool,
        failure: Option<Message>,
    ) -> Result<(), SessionFailure> {
        if let Some(message) = failure {
            return Err(SessionFailure { code: "action-error", message, help: None });
        }
        if ends {
            self.end(program);
        } else if let Some(action) = self.frames.change(above) {
            action.resumed = action.at == FrameTarget::Action;
        }
        Ok(())
    }

    /// Something inserted cannot go on: what stands above it ends with this error, or is asked for a route.
    pub(crate) fn insertion_failed(
        &mut self,
        program: &Program,
        key: &str,
        lost: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let above = parent(key).to_owned();
        let Some(frame) = self.leave_insertion(key) else { return Err(lost) };
        match frame.insertion {
            Some(Insertion::Called) | None => {
                if let Some(action) = self.frames.change(&above) {
                    action.last = Some(Box::new(Outcome::failed(&lost.message)));
                }
                Ok(())
            }
            // The interrupted action had no part in it: it goes on, and the answer that it has yet to see is not lost.
            Some(Insertion::Triggered { ends, failure, .. }) => {
                let place = self.place_of(&above);
                let SessionFailure { code, message, help } = lost;
                draft.event(&place, Event::Error { code, message, help });
                self.trigger_over(program, &above, ends, failure)
            }
            // After the last action there is nothing that could have a table but the session.
            Some(Insertion::Routed { .. }) => {
                self.decide(program, &above, Outcome::failed(&lost.message), Some(lost), draft)
            }
        }
    }

    /// What a skill gives to its caller.
    fn outputs(&self, skill: &Skill) -> Map<String, Value> {
        let output = |name: &String| Some((name.clone(), self.scopes.get(name)?.value.clone()));
        skill.outputs.iter().filter_map(output).collect()
    }
}

/// What a skill is given, as it declares it.
fn fitting_inputs(skill: &Skill, inputs: Map<String, Value>) -> Result<Map<String, Value>, SessionFailure> {
    let layer = ScopeLayer::new(Scope::Topic, "", Arc::clone(&skill.inputs));
    let fits = |(name, value): (String, Value)| match fitting(Some(&layer), &name, value) {
        Ok(value) => Ok((name, value)),
        Err(error) => Err(SessionFailure {
            code: "type-misfit",
            message: msg!("the skill `{}` does not accept this value: {error}", skill.id),
            help: None,
        }),
    };
    inputs.into_iter().map(fits).collect()
}
