//! The end of a behavior: applies its changes to the context, evaluates the reflection and decides where the session continues.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value, json};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{Current, LoopFrame, LoopPoint};
use crate::actions::behaviors::plan::{self, MAX_MOVES, PlanTarget};
use crate::actions::behaviors::planning::set_goal;
use crate::actions::behaviors::source::{masker, unusable};
use crate::actions::call_spans::traced_reflection;
use crate::actions::notebook::perform::{PerformOptions, start};
use crate::notebook::action::{NotebookAction, Read, read};
use crate::notebook::protocol::context::ContextUpdate;
use crate::notebook::protocol::response::{Reflection, Response, Transition, reflection, response};
use crate::notebook::state::{BEHAVIOR_COMPLETED, NotebookState};
use crate::program::event::Event;
use crate::program::flow::{ActionError, Flow};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::script::fields::shortened;

/// The maximum length of a target or a reason in an event, in characters.
const MAX_EVENT_CHARS: usize = 500;

/// The maximum number of variables that one response may set.
const MAX_VARIABLES: usize = 200;

/// Whether the target of the step is achieved, and what decided it.
struct Verdict {
    achieved: bool,
    /// `reflection`, `transition`, `interrupted`, or `nobody`.
    by: &'static str,
    explanation: Message,
}

/// A behavior that has ended, as far as it decides where the session continues.
struct EndedBehavior<'a> {
    wanted: &'a Transition,
    verdict: &'a Verdict,
    should_continue: Option<bool>,
    /// The step that it worked on.
    start: Option<&'a PlanTarget>,
    /// The stage that it worked on, if that has no steps.
    start_stage: Option<&'a str>,
    /// Its number in that step.
    iteration: u32,
    /// Whether the session is no longer in that step.
    has_moved: bool,
    /// Whether one of its actions completed that step.
    completed: bool,
    /// Whether the judgement completes the stage of that step.
    completes_stage: bool,
    /// Whether its server plans the steps of stages that have none.
    plans: bool,
}

/// Where the session continues after a behavior.
enum AfterBehavior {
    /// With the next behavior, in the same step or in another step of the plan.
    Ask,
    /// At this topic of the script.
    Topic(String),
    /// After the loop.
    Over(ExitReason),
}

impl LoopConfig {
    /// Called when all actions of a behavior are done: applies the changes of the response, and continues with the reflection.
    pub(crate) async fn finish_actions(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        mut current: Current,
    ) -> Result<Flow, ActionError> {
        frame.executed = frame.executed.saturating_add(current.counts.actions_executed);
        frame.failed = frame.failed.saturating_add(current.counts.actions_failed);
        if current.cut_short {
            return self.conclude(turn, frame, current, None);
        }
        let mut state = turn.notebook_state();
        let not_applied = apply_context_update(turn, &mut state, &stored_response(&current).context_update);
        current.counts.add_not_understood(not_applied);
        turn.set_notebook_state(state);
        if !self.reflection {
            return self.conclude(turn, frame, current, None);
        }
        frame.at = LoopPoint::Reflect;
        frame.current = Some(current);
        turn.store_state(&frame)?;
        Ok(Flow::Onward)
    }

    /// Asks for the reflection and ends the behavior with it.
    pub(crate) async fn reflect(&self, turn: &Turn<'_>, mut frame: LoopFrame) -> Result<Flow, ActionError> {
        turn.in_round(frame.behaviors);
        let Some(current) = frame.current.clone() else {
            return Err(ActionError::failed("frame-unreadable", "the stored state of this action has no behavior"));
        };
        let reflected = match &self.source {
            BehaviorSource::Model(request) => self.reflect_by_model(turn, &frame, &current, request).await?,
            BehaviorSource::Server(name) => {
                let server = turn.services.host.servers.server(name)?;
                let mut state = current.judged(turn.notebook_state());
                if server.plans() {
                    state.set_fsm(BEHAVIOR_COMPLETED, "COMPLETE_BEHAVIOR", &turn.services.clock.at(turn.last_seq + 1));
                }
                // The plan may have lost the step in the meantime.
                let goal = match state.current_step() {
                    None if !current.goal.is_empty() => Some(current.goal.clone()),
                    _ => self.step_goal(turn, &state)?,
                };
                let feedback = current.counts.for_judge();
                let mut observation =
                    self.observe(turn, (&state, goal.as_deref()), Some(&feedback), server.as_ref()).await?;
                if server.plans() && !current.target.is_empty() {
                    set_goal(&mut observation, "behavior", &masker(turn).text(&current.target));
                }
                match traced_reflection(turn, name, server.as_ref(), &observation).await {
                    Ok(answer) => reflection(&answer).map_err(|error| error.message),
                    Err(error) => unusable(error)?,
                }
            }
        };
        match reflected {
            Ok(reflected) => {
                frame.unusable_answers = 0;
                frame.current = None;
                self.perform_remarks(turn, &reflected.remarks).await?;
                self.conclude(turn, frame, current, Some(reflected))
            }
            Err(error) => self.retry(turn, frame, &error),
        }
    }

    /// Performs the actions with which a server comments on a result, as far as they run no code.
    async fn perform_remarks(&self, turn: &Turn<'_>, remarks: &[Value]) -> Result<(), ActionError> {
        for remark in remarks {
            let Ok(Read::Known(mut action)) = read(remark) else { continue };
            match action.as_mut() {
                NotebookAction::Add(add) => add.run = false,
                NotebookAction::NewSection(_) | NotebookAction::NewStep(_) | NotebookAction::UpdateLastText(_) => {}
                _ => continue,
            }
            start(turn, &action, PerformOptions::by(self.by())).await?;
        }
        Ok(())
    }

    pub(crate) fn conclude(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        mut current: Current,
        reflected: Option<Reflection>,
    ) -> Result<Flow, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        let mut state = turn.notebook_state();
        let transition = if current.cut_short { Transition::default() } else { stored_response(&current).transition };
        if let Some(reflected) = &reflected {
            current.counts.add_not_understood(reflected.ignored.iter().cloned());
            let not_applied = apply_context_update(turn, &mut state, &reflected.context_update);
            current.counts.add_not_understood(not_applied);
        }
        let decision = reflected.as_ref().map(|reflected| &reflected.transition);
        let plan = decision.and_then(|decision| decision.workflow_update.as_ref());
        if let Some(plan) = plan.or(transition.workflow_update.as_ref()) {
            match plan.check() {
                Ok(()) => state.workflow_pending = Some(plan.clone()),
                Err(rejection) => {
                    let message = msg!("a plan was not accepted: {}", rejection.message);
                    current.counts.add_not_understood([message.to_string()]);
                    turn.warn("bad-plan", message, None);
                }
            }
        }
        // An action may have completed the step. A plan that replaces the current one now completes nothing.
        let completed = |target: &PlanTarget| state.location.completed_steps.contains(&target.step);
        let completed =
            current.start_step.as_ref().is_some_and(completed) && plan::current(&state) != current.start_step;
        state.end_behavior(&at);
        let start = current.start_step.as_ref();
        let has_moved = plan::current(&state).as_ref() != start;
        let verdict = verdict(&current, reflected.as_ref(), &transition, completed);
        let should_continue =
            decision.and_then(|decision| decision.continue_behaviors).or(transition.continue_behaviors);
        let wanted = decision.filter(|decision| has_target(decision)).unwrap_or(&transition);
        let plans = self.planner(turn)?.is_some();
        let completes_stage = reflected.as_ref().is_some_and(|reflected| reflected.completes_stage);
        let ended = EndedBehavior {
            plans,
            completes_stage,
            wanted,
            verdict: &verdict,
            should_continue,
            start,
            start_stage: current.start_stage.as_deref(),
            iteration: current.iteration,
            has_moved,
            completed,
        };
        let mut refused = None;
        let next = self.after_behavior(turn, &mut state, &frame, (&ended, &mut refused), &at);
        current.counts.add_not_understood(refused);
        let (by, mut explanation) = match &next {
            AfterBehavior::Over(ExitReason::MaxRoundsReached) if !verdict.achieved => {
                ("bound", msg!("the loop reached its maximum of {} behaviors", frame.behaviors))
            }
            _ => (verdict.by, verdict.explanation.clone()),
        };
        explanation.change_texts(&mut |text| *text = cut_in_the_middle(text, MAX_EVENT_CHARS));
        turn.emit_notebook_event(Event::Behavior {
            behavior_id: current.id.clone(),
            iteration: current.iteration,
            target: cut_in_the_middle(&current.target, MAX_EVENT_CHARS),
            feedback: json!(current.counts),
            target_achieved: verdict.achieved,
            decided_by: by,
            why: explanation.clone(),
        });
        frame.feedback = Some(current.counts);
        frame.current = None;
        frame.at = LoopPoint::Ask;
        if let AfterBehavior::Topic(_) = next {
            state.moves = state.moves.saturating_add(1);
        }
        turn.set_notebook_state(state);
        let outcome = |reason| self.outcome(turn, &frame, reason, verdict.achieved, &explanation);
        match next {
            AfterBehavior::Ask => {
                turn.store_state(&frame)?;
                Ok(Flow::Onward)
            }
            AfterBehavior::Topic(topic) => {
                let reason = msg!("{} moves the session there", self.source_name());
                Ok(Flow::Goto(Box::new(outcome(ExitReason::ExitCriteriaMet)), topic, reason))
            }
            AfterBehavior::Over(reason) => Ok(Flow::done(outcome(reason))),
        }
    }

    /// Decides where the session continues, and moves the location of the state there.
    fn after_behavior(
        &self,
        turn: &Turn<'_>,
        state: &mut NotebookState,
        frame: &LoopFrame,
        (ended, refused): (&EndedBehavior<'_>, &mut Option<String>),
        at: &str,
    ) -> AfterBehavior {
        let &EndedBehavior {
            wanted,
            verdict,
            should_continue,
            start,
            start_stage,
            iteration,
            has_moved,
            completed,
            completes_stage,
            plans,
        } = ended;
        let next_behavior = if frame.behaviors < self.last_behavior(turn) {
            AfterBehavior::Ask
        } else {
            AfterBehavior::Over(ExitReason::MaxRoundsReached)
        };
        let before = plan::current(state);
        if let Some(target) = self.destination(turn, state, wanted, (at, refused))
            && before.as_ref() != Some(&target)
        {
            if verdict.achieved && !has_moved {
                // Completing a step of the plan cannot fail.
                let _ = state.complete_step(None, at);
            }
            let _ = state.go_to(Some(&target.stage), Some(&target.step), at);
            let is_other_topic = plan::is_topic(turn.program, &target) && target.step != turn.topic.id;
            return if is_other_topic { AfterBehavior::Topic(target.step) } else { next_behavior };
        }
        if verdict.achieved {
            let stage = start.filter(|_| completed).or(before.as_ref()).map(|step| step.stage.clone());
            // A stage without steps is completed as a whole.
            let whole_stage = start_stage.filter(|_| !has_moved).map(str::to_owned);
            let completes_stage = completes_stage || whole_stage.is_some();
            let stage = stage.or(whole_stage);
            if !has_moved {
                let _ = state.complete_step(None, at);
            }
            if completes_stage && let Some(stage) = &stage {
                // The stage is in the plan, or there is nothing to complete.
                let _ = state.complete_stage(Some(stage), at);
            }
            // The loop itself continues with a step of the same stage that the script does not have, and with any of those that its
            // server, or the state that the session began from, has planned.
            let crosses_stages = plans || state.given.is_some();
            let next = plan::current(state).filter(|next| crosses_stages || Some(&next.stage) == stage.as_ref());
            // The server plans the steps of the next stage when it is reached.
            let may_move = completed || !has_moved || plan::current(state).is_none();
            if plans
                && may_move
                && let Some(open) = state.open_stage(stage.as_deref()).filter(|open| open.steps.is_empty())
            {
                let open = open.id.clone();
                state.enter_unplanned_stage(open, at);
                return next_behavior;
            }
            return match next {
                Some(next) if !plan::is_topic(turn.program, &next) => next_behavior,
                _ => AfterBehavior::Over(ExitReason::ExitCriteriaMet),
            };
        }
        // An action completed the step too early: it is entered again.
        if completed && let Some(start) = start {
            let _ = state.go_to(Some(&start.stage), Some(&start.step), at);
            state.location.behavior_iteration = iteration;
        }
        match should_continue {
            Some(false) => AfterBehavior::Over(ExitReason::ExitCriteriaMet),
            _ => next_behavior,
        }
    }

    /// The target step of a transition. If the plan does not have it, a warning is reported and nothing moves.
    fn destination(
        &self,
        turn: &Turn<'_>,
        state: &NotebookState,
        wanted: &Transition,
        (at, refused): (&str, &mut Option<String>),
    ) -> Option<PlanTarget> {
        let (stage, step) = (wanted.next_stage_id.as_deref(), wanted.next_step_id.as_deref());
        let target = match plan::resolve(state, stage, step, at) {
            Ok(target) => target?,
            Err(rejection) => {
                *refused = Some(format!(
                    "the transition to the stage `{}` and the step `{}` was refused: {}",
                    shortened(stage.unwrap_or("-")),
                    shortened(step.unwrap_or("-")),
                    rejection.message
                ));
                let message = msg!("{} cannot move to that location: {}", self.source_name(), rejection.message);
                turn.warn("unknown-step", message, Some(Message::word("the session stays where it is")));
                return None;
            }
        };
        let is_other_topic = plan::is_topic(turn.program, &target) && target.step != turn.topic.id;
        if is_other_topic && state.moves >= MAX_MOVES {
            let message = msg!("{} has moved the session {MAX_MOVES} times; it now stays here", self.source_name());
            turn.warn("too-many-moves", message, None);
            return None;
        }
        Some(target)
    }

    /// The number of the last behavior that is allowed.
    pub(crate) fn last_behavior(&self, turn: &Turn<'_>) -> u32 {
        turn.last_round(self.max_behaviors)
    }

    fn outcome(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        reason: ExitReason,
        achieved: bool,
        explanation: &Message,
    ) -> Outcome {
        let fields = [
            ("current_round", Value::from(frame.behaviors)),
            ("max_rounds", Value::from(self.last_behavior(turn))),
            ("exit_reason", Value::from(reason.name())),
            ("target_achieved", Value::from(achieved)),
            ("behaviors", Value::from(frame.behaviors)),
            ("actions_executed", Value::from(frame.executed)),
            ("actions_failed", Value::from(frame.failed)),
            ("why", json!(explanation)),
        ];
        let metadata: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Outcome { metadata, ..Outcome::done(reason) }
    }
}

/// The response of a behavior without its actions. It was already read once when it was received.
fn stored_response(current: &Current) -> Response {
    response(&current.response).unwrap_or_default()
}

fn has_target(transition: &Transition) -> bool {
    transition.next_stage_id.is_some() || transition.next_step_id.is_some()
}

/// The reflection decides, else the transition; `metadata` never does. An action that ended the step counts as a transition
/// that achieves the target.
fn verdict(current: &Current, reflected: Option<&Reflection>, transition: &Transition, completed: bool) -> Verdict {
    if current.cut_short {
        return Verdict {
            achieved: false,
            by: "interrupted",
            explanation: Message::word("the behavior was cut short"),
        };
    }
    if let Some(reflected) = reflected {
        let decision = &reflected.transition;
        if let Some(achieved) = reflected.target_achieved.or(decision.target_achieved) {
            let reason = if reflected.reason.is_empty() { &decision.reason } else { &reflected.reason };
            return Verdict { achieved, by: "reflection", explanation: Message::text(reason.clone()) };
        }
    }
    match transition.target_achieved {
        Some(achieved) => Verdict { achieved, by: "transition", explanation: Message::text(transition.reason.clone()) },
        None if completed => {
            Verdict { achieved: true, by: "transition", explanation: Message::word("an action completed the step") }
        }
        None => Verdict { achieved: false, by: "nobody", explanation: Message::text(transition.reason.clone()) },
    }
}

/// Applies a context update. Declared variables are set through the turn, so that they keep their types and sensitive ones stay
/// hidden; undeclared variables are stored in the notebook. Returns what was not applied.
fn apply_context_update(turn: &Turn<'_>, state: &mut NotebookState, update: &ContextUpdate) -> Vec<String> {
    let mut not_applied = Vec::new();
    let mut warn = |code: &'static str, message: Message| {
        not_applied.push(message.to_string());
        turn.warn(code, message, None);
    };
    if update.variables.len() > MAX_VARIABLES {
        warn("context-left-out", msg!("a response sets more than {MAX_VARIABLES} variables; the rest were ignored"));
    }
    for (name, value) in update.variables.iter().take(MAX_VARIABLES) {
        let declared = turn.work().scopes.declaration(name).is_some();
        if declared {
            if let Err(error) = turn.set(name, value.clone(), None) {
                warn("variable-misfit", msg!("a response cannot set a variable: {error}"));
            }
        } else if let Err(rejection) = state.store_variable(name, value.clone()) {
            warn("context-left-out", msg!("a variable in a response was ignored: {}", rejection.message));
        }
    }
    for left_out in update.apply(state) {
        warn("context-left-out", left_out);
    }
    not_applied
}
