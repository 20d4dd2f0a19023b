//! Triggers: conditions that can interrupt a session at any time (docs/triggers.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value, json};

use crate::program::evaluation::null_condition;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::route_table::Trigger;
use crate::program::turn::HIDEABLE_NAMES;
use crate::run::decided_failures::earlier_failure;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, HeldAnswer, HeldAt, ROOT, lineage};
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::expr::fields::fields_of;
use bcc_lang::expr::truth::Truth;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::value::scopes::Scopes;

#[derive(Clone, Copy)]
pub(crate) struct TriggerCheck<'a> {
    /// The location of the turn, or of the action that a message is for.
    pub(crate) place: &'a EventLocation,
    /// Whether no answer was assessed: no turn has processed the newest message, or the turn had none.
    pub(crate) unjudged: bool,
    /// The error of the turn, if it has no route.
    pub(crate) failure: Option<&'a Message>,
    /// The answer that the turn took, if it is not the newest message: a trigger had held it back.
    pub(crate) held: Option<&'a HeldAnswer>,
    /// Whether the turn is about to wait for a decision or a time, which may take long.
    pub(crate) opens_request: bool,
}

/// A trigger that holds.
pub(crate) struct FiredTrigger<'p> {
    trigger: &'p Trigger,
    why: Message,
}

impl Session {
    /// The scopes of the script, at any position.
    pub(crate) fn script_scopes(&self) -> &Scopes {
        self.outer.iter().find(|scopes| !scopes.is_isolated()).unwrap_or(&self.scopes)
    }

    /// Checks the triggers with the `metadata` of the last turn. The first one that holds inserts its target below the innermost frame.
    /// Returns whether one fired.
    /// Errors: The session fails because triggers fired in a circle without an answer.
    pub(crate) fn check_triggers(
        &mut self,
        program: &Program,
        check: TriggerCheck<'_>,
        draft: &mut CommitDraft,
    ) -> Result<bool, SessionFailure> {
        let metadata = std::mem::take(&mut self.metadata);
        // Nothing interrupts the end of a session.
        if self.head.ending.is_some() {
            return Ok(false);
        }
        let scopes = self.script_scopes().session_scopes();
        let Some(fired) = self.find_trigger(program, check, metadata, scopes, draft) else { return Ok(false) };
        self.fire(program, fired, check, draft)?;
        Ok(true)
    }

    /// Checks the triggers against a turn that is not applied yet, which can then be dropped. `scopes` are the variables with its
    /// changes.
    pub(crate) fn find_trigger_in_turn<'p>(
        &mut self,
        program: &'p Program,
        check: TriggerCheck<'_>,
        (metadata, scopes): (Map<String, Value>, &Scopes),
        draft: &mut CommitDraft,
    ) -> Option<FiredTrigger<'p>> {
        let before = std::mem::replace(&mut self.scopes, scopes.clone());
        let visible = self.script_scopes().session_scopes();
        self.scopes = before;
        self.find_trigger(program, check, metadata, visible, draft)
    }

    /// The first trigger that holds.
    fn find_trigger<'p>(
        &mut self,
        program: &'p Program,
        check: TriggerCheck<'_>,
        metadata: Map<String, Value>,
        scopes: Scopes,
        draft: &mut CommitDraft,
    ) -> Option<FiredTrigger<'p>> {
        if program.triggers.is_empty() {
            return None;
        }
        let key = self.frames.leaf();
        let place = check.place;
        // A trigger belongs to the session: it sees the same names at any position.
        let mut names = crate::program::turn::base_names(program, None, None, &self.recent, scopes);
        names.set_text("time", self.services.clock.prompt_time(self.last_seq, program.templates.language()));
        names.set("current_round", json!(place.round.unwrap_or(1)));
        names.set("max_rounds", metadata.get("max_rounds").cloned().unwrap_or(json!(1)));
        let metadata = with_all_names(metadata, &program.triggers, place.round.unwrap_or(1));
        names.set("metadata", Value::Object(metadata));
        if let Some(held) = check.held {
            names.set_text("last_user_message", held.text.as_str());
        }
        names.let_variables_hide(&HIDEABLE_NAMES);
        for (number, trigger) in program.triggers.iter().enumerate() {
            let earlier = program.triggers.get(..number).unwrap_or_default();
            if self.is_off(&key, trigger, check.held)
                || !check.opens_request && self.waits_for_insertion(&key, trigger, earlier)
            {
                continue;
            }
            let why = match trigger.when.truth(&names) {
                Ok(Truth::False) => continue,
                Ok(Truth::Null(part)) => {
                    // Without an assessed answer, the metadata is not known yet.
                    let is_early = check.unjudged && !fields_of("metadata", trigger.when.root()).is_empty();
                    let warning = null_condition(trigger.when.source(), &part);
                    if let (false, Event::Warning { message, .. }) = (is_early, &warning)
                        && self.is_new_warning(&EventLocation::default(), message, draft)
                    {
                        draft.event(place, warning);
                    }
                    continue;
                }
                Ok(Truth::True) => msg!("`when` holds: {}", trigger.when.source()),
                // Without an assessed answer there is no metadata; the trigger is checked again when there is one.
                Err(_) if check.unjudged && !fields_of("metadata", trigger.when.root()).is_empty() => continue,
                Err(error) => {
                    let message = msg!(
                        "the condition of the trigger `{}`, `{}`, cannot be evaluated, so the trigger counts as fired: {}",
                        trigger.id,
                        trigger.when.source(),
                        error.message
                    );
                    draft.event(place, Event::Error { code: "trigger-failed", message, help: error.help });
                    msg!("`when` cannot be evaluated: {}", trigger.when.source())
                }
            };
            return Some(FiredTrigger { trigger, why });
        }
        None
    }

    /// Whether a trigger is not checked now.
    fn is_off(&self, key: &str, trigger: &Trigger, held: Option<&HeldAnswer>) -> bool {
        let is_own_insertion = |key: &str| {
            let insertion = self.frames.get(key).and_then(|frame| frame.insertion.as_ref());
            matches!(insertion, Some(Insertion::Triggered { trigger: id, .. }) if *id == trigger.id)
        };
        let fired = self.head.fired.get(&trigger.id);
        let fired_for = |held: &HeldAnswer| held.at.as_ref().is_some_and(|at| at.triggers.contains(&trigger.id));
        fired.is_some_and(|fired| trigger.once || fired.answers == self.answers)
            || held.is_some_and(fired_for)
            || lineage(key).any(is_own_insertion)
    }

    /// Whether a trigger that would lead elsewhere waits until what an earlier one inserted for the same answer is over: that must not
    /// be cut off.
    fn waits_for_insertion(&self, key: &str, trigger: &Trigger, earlier: &[Trigger]) -> bool {
        let is_of_same_answer = |id: &str| self.head.fired.get(id).is_some_and(|fired| fired.answers == self.answers);
        matches!(trigger.then, RouteTarget::End | RouteTarget::Goto(_))
            && lineage(key).any(|key| match self.frames.get(key).and_then(|frame| frame.insertion.as_ref()) {
                Some(Insertion::Triggered { trigger: id, .. }) => {
                    earlier.iter().any(|earlier| earlier.id == *id) && is_of_same_answer(id)
                }
                _ => false,
            })
    }

    /// Inserts what a trigger inserts below the innermost frame. Without an insertion, follows it at once.
    pub(crate) fn fire(
        &mut self,
        program: &Program,
        FiredTrigger { trigger, why }: FiredTrigger<'_>,
        check: TriggerCheck<'_>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = check.place;
        let leaf = self.frames.leaf();
        let key = leaf.as_str();
        let route = trigger.route();
        let from = place.action_id.clone().unwrap_or_default();
        draft.event(place, Event::Triggered { reason: trigger.id.clone(), route: route.clone(), from, why });
        self.count_route_hop(format!("trigger {} → {route}", trigger.id))?;
        let answers = self.answers;
        let fired = self.head.fired.entry(trigger.id.clone()).or_default();
        fired.times += 1;
        fired.answers = answers;
        let answer = self.pending.take();
        self.head.pending = false;
        let messages = self.head.messages;
        if let Some(frame) = self.frames.change(key).filter(|frame| frame.at == FrameTarget::Action)
            && let Some(text) = answer
        {
            frame.hold_answer(Some(HeldAnswer { text, at: Some(HeldAt { messages, answers, triggers: vec![] }) }));
        }
        self.note_fired_for(key, &trigger.id, check.held.is_some());
        let failure = check.failure.cloned();
        let Some(id) = &trigger.insert else { return self.trigger_done(program, key, &trigger.then, failure, draft) };
        let outside = self.scopes.is_isolated();
        let goto = match &trigger.then {
            RouteTarget::Goto(id) => Some(id.clone()),
            _ => None,
        };
        let ends = trigger.then == RouteTarget::End;
        let insertion = Insertion::Triggered { trigger: trigger.id.clone(), ends, goto, outside, failure };
        self.insert(program, key, id, insertion, ExactValues::new(), draft)
    }

    /// Notes that a trigger fired for the answer that the action `key` holds back, or, unless that is an earlier one, for the newest
    /// answer, wherever it is held back.
    fn note_fired_for(&mut self, key: &str, trigger: &str, is_earlier: bool) {
        let newest = self.answers;
        for holder in lineage(key) {
            let is_meant = |at: &HeldAt| if is_earlier { holder == key } else { at.answers == newest };
            if self.frames.get(holder).and_then(|frame| frame.held_at.as_ref()).is_some_and(is_meant)
                && let Some(at) = self.frames.change(holder).and_then(|frame| frame.held_at.as_mut())
            {
                at.triggers.push(trigger.to_owned());
            }
        }
    }

    /// What a trigger inserted below the frame `above` ended: the session fails with the earlier error, or continues at `then`.
    pub(crate) fn trigger_done(
        &mut self,
        program: &Program,
        above: &str,
        then: &RouteTarget,
        failure: Option<Message>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if let Some(message) = failure {
            return Err(earlier_failure(message));
        }
        if matches!(then, RouteTarget::End | RouteTarget::Goto(_))
            && let Some(error) = self.decided_failure(program, above)
        {
            return Err(error);
        }
        match then {
            RouteTarget::End => self.end(program),
            RouteTarget::Goto(target) => {
                let held = lineage(above).filter_map(|key| self.frames.get(key)?.held_answer()).last();
                self.jump_from_trigger(program, target, draft)?;
                // The `finally` of a topic goes on before the jump; its action is still there, with the answer.
                match self.frames.change(above).filter(|frame| frame.at == FrameTarget::Action) {
                    Some(action) => action.resumed = true,
                    None => self.carry_answer(held),
                }
            }
            _ => {
                if let Some(action) = self.frames.change(above) {
                    action.resumed = action.at == FrameTarget::Action;
                }
            }
        }
        Ok(())
    }

    /// Stores an answer for the first action that listens from now on.
    fn carry_answer(&mut self, answer: Option<HeldAnswer>) {
        if answer.is_some()
            && let Some(root) = self.frames.change(ROOT)
        {
            root.hold_answer(answer);
        }
    }
}

/// Adds the names of `metadata` that always exist, and those that a trigger uses; values of a reply stay.
fn with_all_names(mut metadata: Map<String, Value>, triggers: &[Trigger], round: u32) -> Map<String, Value> {
    for (name, _) in triggers.iter().flat_map(|trigger| fields_of("metadata", trigger.when.root())) {
        metadata.entry(name).or_insert(Value::Null);
    }
    let always = [
        ("emotional_tone", json!("")),
        ("crisis_signal", json!(false)),
        ("current_round", json!(round)),
        ("max_rounds", json!(1)),
        ("exit_reason", Value::Null),
        ("parse_retry_count", json!(0)),
        ("parse_error", json!(false)),
    ];
    for (name, value) in always {
        let entry = metadata.entry(name).or_insert(Value::Null);
        if entry.is_null() {
            *entry = value;
        }
    }
    metadata
}
