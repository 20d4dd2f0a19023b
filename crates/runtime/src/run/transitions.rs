//! Transitions between frames: entering the next phase, topic and action, and leaving finished ones.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::program::evaluation::{evaluation_failure, null_condition};
use crate::program::event::Event;
use crate::program::flow::{ActionError, PROMPT_FAILED};
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Phase, Program, ProgramStep, Topic};
use crate::program::turn::{HIDEABLE_NAMES, base_names};
use crate::run::draft::CommitDraft;
use crate::run::frames::{
    Frame, FrameTarget, ROOT, child, component, id_of, lineage, parent, public_path, redacted_key,
};
use crate::run::retry::DECLARED;
use crate::run::session::Session;
use crate::run::skipped_actions::SkipReason;
use crate::run::topic_exit::TopicExit;
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::truth::Truth;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::scopes::{DeclarationMap, Scope, ScopeLayer, Stored};
use bcc_llm::model::error::ModelError;

/// Where a walk through the frames ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    Action,
    /// The branch that the session works in has no more actions.
    Branch,
    End,
}

/// An error that the session cannot continue with: a condition that cannot be evaluated, a failing route, or a frame with an
/// invalid target.
#[derive(Clone, Debug)]
pub(crate) struct SessionFailure {
    pub(crate) code: &'static str,
    pub(crate) message: Message,
    pub(crate) help: Option<Message>,
}

/// What helps if a model refuses a request each time that it gets it.
const CHANGE_AND_RESUME: &str =
    "change that and resume the session, or resume it with another model: `sessions resume ID --model M`";

/// Whether a server answers with this status until somebody changes something.
const fn is_lasting(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 408 | 425 | 429)
}

impl SessionFailure {
    /// The error for a frame with an invalid target.
    pub(crate) fn new(message: Message) -> Self {
        Self { code: "frame-unreadable", message, help: None }
    }

    /// The error for a model that gave no reply, with its help text.
    pub(crate) fn of_model(error: &ModelError) -> Self {
        let help = match error {
            ModelError::NoReply { .. } => "add the reply to the file and resume the session",
            ModelError::Differs { .. } => {
                "an answer, the script, a template, a variable or the prompts of bcc-script have changed since the recording; record again, or use `--replay-by order`, which accepts other prompts"
            }
            ModelError::RecordedFailure { .. } => {
                "the recording ends here, too; continue with a model: `sessions resume ID --model M`"
            }
            ModelError::Refused { .. } => "resume the session with another model: `sessions resume ID --model M`",
            ModelError::Config { .. } | ModelError::TooLarge { .. } => CHANGE_AND_RESUME,
            ModelError::Http { status, .. } if is_lasting(*status) => CHANGE_AND_RESUME,
            _ => "resume the session when the model can be reached",
        };
        Self { code: "model-failed", message: error.to_message(), help: Some(Message::word(help)) }
    }

    /// A prompt that cannot be rendered. Resuming is of no use, because the session keeps the templates with which it started.
    pub(crate) fn of_prompt(message: Message, help: Option<Message>) -> Self {
        let repeat = Message::word(
            "no answer is lost: fix the template, and give the answers again with `sessions retry ID --turn 0 --script FILE`",
        );
        let help = match help {
            Some(help) => msg!("{}; {}", help, repeat),
            None => repeat,
        };
        Self { code: PROMPT_FAILED, message, help: Some(help) }
    }

    /// The error of an action, or of the `set` of a route.
    pub(crate) fn of(error: ActionError) -> Self {
        match error {
            ActionError::Failed { code, message, help } => Self { code, message, help },
            ActionError::Model(error) => Self { code: "model-failed", message: error.to_message(), help: None },
            ActionError::Unusable { message, help } => Self { code: "replies-unusable", message, help },
            ActionError::Prompt { message, help } => Self { code: PROMPT_FAILED, message, help },
            ActionError::Source(error) => Self { code: error.code, message: error.message, help: error.help },
            ActionError::Kernel(error) => Self { code: error.code, message: error.message, help: error.help },
        }
    }
}

impl Session {
    /// Moves from the innermost frame to the next action that must run, entering and leaving the frames between.
    pub(crate) fn walk_to_action(&mut self, draft: &mut CommitDraft) -> Result<WalkEnd, SessionFailure> {
        // Every step enters or leaves a frame. Only routes lead to a frame again, and those are counted, so the loop ends.
        loop {
            let program = Arc::clone(&self.program);
            let key = self.frames.leaf();
            let Some(frame) = self.frames.get(&key).cloned() else {
                return Err(SessionFailure::new(msg!("no frame `{}`", redacted_key(&key))));
            };
            match &frame.at {
                // The next turn starts a compensation, or ends the session.
                FrameTarget::Session if self.head.ending.is_some() => return Ok(WalkEnd::Action),
                FrameTarget::Session => match program.phases.get(frame.next) {
                    None => return Ok(WalkEnd::End),
                    Some(phase) => self.try_phase(&program, phase, draft)?,
                },
                FrameTarget::Phase => {
                    let phase = self.frames.get(ROOT).and_then(|root| program.phases.get(root.next));
                    let phase = phase
                        .ok_or_else(|| SessionFailure::new(msg!("no phase for frame `{}`", redacted_key(&key))))?;
                    match phase.topics.get(frame.next) {
                        None => self.leave(&key),
                        Some(topic) => self.try_topic(&program, (phase, topic), &key, draft)?,
                    }
                }
                FrameTarget::Topic
                | FrameTarget::Block(_)
                | FrameTarget::Skill(_)
                | FrameTarget::Single(_)
                | FrameTarget::Finally
                | FrameTarget::Compensation => {
                    let steps = self.steps_of(&program, &key);
                    let steps =
                        steps.ok_or_else(|| SessionFailure::new(msg!("no steps for `{}`", redacted_key(&key))))?;
                    match steps.get(frame.next) {
                        Some(_) if frame.at == FrameTarget::Topic && self.leave_if_overdue(&program, &key, draft) => {}
                        Some(step) => self.enter_action(&program, step, &key, draft)?,
                        None if frame.at == FrameTarget::Topic => {
                            if !self.enter_finally(&program, TopicExit::Leave) {
                                self.leave(&key);
                            }
                        }
                        None if frame.at == FrameTarget::Finally => self.finally_done(&program, &key, draft)?,
                        None if frame.at == FrameTarget::Compensation => self.compensation_done(&key, draft)?,
                        None if frame.branch.is_some() => return Ok(WalkEnd::Branch),
                        None if frame.insertion.is_some() => self.insertion_done(&program, &key, draft)?,
                        None => {
                            self.frames.remove(&key);
                            if let Some(action) = self.frames.change(parent(&key)) {
                                action.last = frame.last;
                            }
                        }
                    }
                }
                FrameTarget::Action => return Ok(WalkEnd::Action),
            }
        }
    }

    /// Enters a phase, unless its condition is false.
    fn try_phase(&mut self, program: &Program, phase: &Phase, draft: &mut CommitDraft) -> Result<(), SessionFailure> {
        let place = EventLocation { phase_id: Some(phase.id.clone()), ..EventLocation::default() };
        let context = (Some(phase), None);
        match self.skipped(program, context, phase.condition.as_ref(), &phase.id, &place, draft) {
            Ok(Some(why)) => {
                draft.event(&place, Event::Skipped { name: phase.id.clone(), why, skipped: None });
                self.next_child(ROOT);
                Ok(())
            }
            Ok(None) => self.enter_phase(phase, draft).map(|_| ()),
            Err(error) => self.node_failed(program, (phase, None), &place, error, draft),
        }
    }

    /// Enters a phase. Returns the key of its frame.
    pub(crate) fn enter_phase(&mut self, phase: &Phase, draft: &mut CommitDraft) -> Result<String, SessionFailure> {
        let place = EventLocation { phase_id: Some(phase.id.clone()), ..EventLocation::default() };
        let key = self.visit("phase", &phase.id, ROOT, draft);
        self.enter(key.clone(), FrameTarget::Phase, (Scope::Phase, key.clone(), &phase.declarations), draft)?;
        draft.event(&place, Event::PhaseEntered { name: phase.name.clone() });
        Ok(key)
    }

    /// Enters a topic, unless its condition is false or it has no elements left.
    fn try_topic(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        above: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = EventLocation {
            phase_id: Some(phase.id.clone()),
            topic_id: Some(topic.id.clone()),
            path: topic.id.clone(),
            ..EventLocation::default()
        };
        let context = (Some(phase), Some(topic));
        // The condition of a topic with a list is evaluated once, before its first element.
        let has_started = self.frames.get(above).is_some_and(|frame| frame.taken > 0);
        let condition = topic.condition.as_ref().filter(|_| !has_started);
        match self.skipped(program, context, condition, &topic.id, &place, draft) {
            Ok(Some(why)) => {
                draft.event(&place, Event::Skipped { name: topic.id.clone(), why, skipped: None });
                self.next_child(above);
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => return self.node_failed(program, (phase, Some(topic)), &place, error, draft),
        }
        if self.skips_for_time(program, (phase, topic), above, &place, draft) {
            self.next_child(above);
            return Ok(());
        }
        let Some(each) = &topic.for_each else {
            let key = self.visit("topic", &topic.id, above, draft);
            return self.enter_topic(topic, key, place, draft);
        };
        self.next_element(program, (phase, topic), each, above, place, draft)
    }

    /// Creates the frame of a topic, and its scope.
    pub(crate) fn enter_topic(
        &mut self,
        topic: &Topic,
        key: String,
        mut place: EventLocation,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        place.path = public_path(&key);
        let path = place.path.clone();
        self.enter(key.clone(), FrameTarget::Topic, (Scope::Topic, path, &topic.declarations), draft)?;
        self.start_at_step(topic, &key);
        draft.event(&place, Event::TopicEntered { name: topic.name.clone() });
        Ok(())
    }

    /// Enters an action, unless its condition is false.
    fn enter_action(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        container: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let key = child(container, &step.id);
        if self.passes_over(program, step, &key, draft) {
            self.follow_earlier(program, step, container);
            return Ok(());
        }
        let error = match self.is_skipped(program, step, &key, draft) {
            Ok(Some(skipped)) => return self.skip_action(program, step, &key, skipped, draft),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.put_action(step, &key);
        let is_entered = error.is_none();
        self.action_started(program, step, &key, error, draft)?;
        if is_entered {
            self.open_earlier_effect(program, step, &key, draft);
        }
        Ok(())
    }

    /// Creates the frame of an action. It continues the number of model calls of earlier visits.
    pub(crate) fn put_action(&mut self, step: &ProgramStep, key: &str) {
        let calls = self.counters.get(&calls_counter(&step.id)).copied().unwrap_or_default();
        // The same action may be open above, if it is inserted while it waits.
        let open = lineage(key).filter(|above| id_of(component(above)) == step.id);
        let open = open.filter_map(|above| self.frames.get(above)).map(|frame| frame.calls).max().unwrap_or(0);
        let calls = u32::try_from(calls).unwrap_or(u32::MAX).max(open);
        self.frames.put(key.to_owned(), Frame { at: FrameTarget::Action, calls, ..Frame::default() });
    }

    /// Restarts an action that has a frame. If it has not started yet, its condition is evaluated again.
    pub(crate) fn restart_action(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let not_started = self.frames.get(key).is_some_and(|frame| frame.not_started);
        let error = match if not_started { self.is_skipped(program, step, key, draft) } else { Ok(None) } {
            Ok(Some(skipped)) => return self.skip_action(program, step, key, skipped, draft),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.action_started(program, step, key, error, draft)
    }

    /// Starts an action, or ends it at once if its condition could not be evaluated.
    fn action_started(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if let Some(frame) = self.frames.change(key) {
            frame.not_started = error.is_some();
        }
        let place = EventLocation { round: None, ..self.place_of(key) };
        draft.event(&place, Event::ActionStarted { name: step.kind.to_owned() });
        let Some(error) = error else { return Ok(()) };
        let outcome = Outcome::failed(&error.message);
        draft.event(&place, Event::Outcome { action_type: step.kind, outcome: Box::new(outcome.clone()) });
        self.continue_after_outcome(program, key, outcome, Some(error), draft)
    }

    /// Why the condition of an action prevents the session from entering it, if it does.
    fn is_skipped(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<Option<SkipReason>, SessionFailure> {
        let container = parent(key);
        let place = self.place_of_unstarted(step, key);
        // An inserted action runs regardless of its condition.
        let single = self.frames.get(container).is_some_and(|frame| matches!(frame.at, FrameTarget::Single(_)));
        let condition = step.condition.as_ref().filter(|_| !single);
        let phase = self.frames.get(ROOT).and_then(|root| program.phases.get(root.next));
        let is_topic = |topic: &&Topic| Some(&topic.id) == place.topic_id.as_ref();
        let context = (phase, phase.and_then(|phase| phase.topics.iter().find(is_topic)));
        let why = self.skipped(program, context, condition, &step.id, &place, draft)?;
        let known = || if single { None } else { self.known_before(step) };
        Ok(why.map(|why| SkipReason { why, skipped: None }).or_else(known))
    }

    /// Ends the frame of an action: its outcome is passed up, and its container moves to its next child.
    pub(crate) fn finish_action(&mut self, key: &str, outcome: &Outcome) {
        if key == ROOT {
            return;
        }
        self.remove_action(key);
        let container = parent(key);
        if let Some(frame) = self.frames.change(container) {
            frame.next += 1;
            if matches!(frame.at, FrameTarget::Block(_)) && outcome.exit_reason != Some(ExitReason::Skipped) {
                frame.last = Some(Box::new(outcome.brief()));
            }
        }
    }

    /// Removes the frame of an action. Its number of model calls is stored for its next visit, so that scripted replies continue where
    /// they were.
    pub(crate) fn remove_action(&mut self, key: &str) {
        let Some(frame) = self.frames.remove(key) else { return };
        let name = calls_counter(id_of(component(key)));
        let before = self.counters.get(&name).copied().unwrap_or_default();
        if frame.at == FrameTarget::Action && u64::from(frame.calls) > before {
            self.counters.insert(name.clone(), u64::from(frame.calls));
            self.changed_counters.push((name, u64::from(frame.calls)));
        }
    }

    /// Leaves a phase or a topic: its scope ends, and its container moves to its next child.
    pub(crate) fn leave(&mut self, key: &str) {
        let left = self.frames.remove(key);
        if let Some(frame) = &left {
            self.visit_ended(key, frame);
        }
        self.scopes.pop();
        let above = parent(key);
        let taken = self.frames.get(above).map_or(0, |frame| frame.taken);
        // A topic that runs for each element of a list is entered again until there are none left.
        if left.is_some_and(|frame| frame.at == FrameTarget::Topic) && taken > 0 {
            return;
        }
        self.next_child(above);
    }

    /// Moves a container to its next child.
    pub(crate) fn next_child(&mut self, key: &str) {
        if let Some(frame) = self.frames.change(key) {
            frame.next += 1;
            frame.taken = 0;
        }
    }

    fn enter(
        &mut self,
        key: String,
        at: FrameTarget,
        (scope, path, declarations): (Scope, String, &Arc<DeclarationMap>),
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        self.frames.put(key, Frame { at, ..Frame::default() });
        let layer = self.fresh_layer(scope, path, declarations, draft)?;
        self.scopes.push(layer);
        Ok(())
    }

    /// A layer with the initial values of its declarations.
    pub(crate) fn fresh_layer(
        &mut self,
        scope: Scope,
        path: String,
        declarations: &Arc<DeclarationMap>,
        draft: &mut CommitDraft,
    ) -> Result<ScopeLayer, SessionFailure> {
        let mut layer = ScopeLayer::new(scope, path, Arc::clone(declarations));
        let at = self.services.clock.at(self.last_seq + 1);
        for declaration in declarations.values().filter(|declaration| !declaration.value.is_null()) {
            let stored =
                Stored { value: declaration.value.clone(), source: DECLARED.into(), round: None, at: at.clone() };
            draft
                .variable(scope, &layer.path, &declaration.name, &stored, declaration.sensitive)
                .map_err(|error| SessionFailure::new(error.to_message()))?;
            if declaration.sensitive {
                self.hide(&declaration.value, draft).map_err(|error| SessionFailure::new(error.to_message()))?;
            }
            layer.put(declaration.name.clone(), stored);
        }
        Ok(layer)
    }

    /// The names for a condition outside of a turn.
    pub(crate) fn names_for(&self, program: &Program, context: (Option<&Phase>, Option<&Topic>)) -> TemplateNames {
        let mut names = base_names(program, context.0, context.1, &self.recent, self.scopes.clone());
        names.set_text("time", self.services.clock.prompt_time(self.last_seq, program.templates.language()));
        names.set("current_round", Value::from(1));
        names.set("max_rounds", Value::from(1));
        names.let_variables_hide(&HIDEABLE_NAMES);
        names
    }

    /// Why a condition prevents the session from entering something, if it does.
    fn skipped(
        &mut self,
        program: &Program,
        context: (Option<&Phase>, Option<&Topic>),
        condition: Option<&Expr>,
        name: &str,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> Result<Option<Message>, SessionFailure> {
        let Some(condition) = condition else { return Ok(None) };
        match condition.truth(&self.names_for(program, context)) {
            Ok(Truth::True) => Ok(None),
            Ok(truth) => {
                if let Truth::Null(part) = &truth {
                    draft.event(place, null_condition(condition.source(), part));
                }
                Ok(Some(msg!("its condition does not hold: {}", condition.source())))
            }
            Err(error) => {
                let (code, help) = evaluation_failure(&program.mistaken_expressions, condition, &error);
                let message =
                    msg!("the condition of `{name}`, `{}`, cannot be evaluated: {}", condition.source(), error.message);
                Err(SessionFailure { code, message, help })
            }
        }
    }

    /// The number of visits, including the one that starts now.
    pub(crate) fn count_visit(&mut self, level: &str, id: &str, draft: &mut CommitDraft) -> u64 {
        let name = format!("visit:{level}:{id}");
        let count = self.counters.entry(name.clone()).or_insert(0);
        *count += 1;
        draft.counters.push((name, *count));
        *count
    }

    /// The key of the next visit of a phase or topic: `id`, then `id#2`, …
    pub(crate) fn visit(&mut self, level: &str, id: &str, above: &str, draft: &mut CommitDraft) -> String {
        match self.count_visit(level, id, draft) {
            1 => child(above, id),
            count => child(above, &format!("{id}#{count}")),
        }
    }
}

fn calls_counter(id: &str) -> String {
    format!("calls:{id}")
}
