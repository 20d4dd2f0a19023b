//! The end of a behavior: what changes in the context, how it is judged, and where the session goes on.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value, json};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{Current, LoopFrame, LoopPoint};
use crate::actions::behaviors::plan::{self, MOST_MOVES, PlanTarget};
use crate::actions::behaviors::source::unusable;
use crate::notebook::protocol::context::ContextUpdate;
use crate::notebook::protocol::response::{Reflection, Response, Transition, reflection, response};
use crate::notebook::state::NotebookState;
use crate::program::event::Event;
use crate::program::flow::{ActionError, Flow};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;

/// The most characters of a purpose or a reason that events repeat.
const MOST_TOLD: usize = 500;

/// The most variables that one response may set.
const MOST_SET: usize = 200;

/// Whether the target of the step is achieved, and who says so.
struct Verdict {
    achieved: bool,
    /// `reflection`, `transition`, `interrupted`, or `nobody`.
    by: &'static str,
    why: Message,
}

/// Where the session goes on after a behavior.
enum AfterBehavior {
    /// In the same step, or in another one of the plan, with the next behavior.
    Ask,
    /// At this topic of the script.
    Topic(String),
    /// Behind the loop.
    Over(ExitReason),
}

impl LoopConfig {
    /// All actions of a behavior are done: what the response changes is changed, and the source is asked for its judgement.
    pub async fn carried_out(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        current: Current,
    ) -> Result<Flow, ActionError> {
        frame.executed = frame.executed.saturating_add(current.counts.actions_executed);
        frame.failed = frame.failed.saturating_add(current.counts.actions_failed);
        if current.cut_short {
            return self.conclude(turn, frame, current, None);
        }
        let mut state = turn.notebook_state();
        update(turn, &mut state, &around(&current).context_update);
        turn.set_notebook_state(state);
        if !self.reflection {
            return self.conclude(turn, frame, current, None);
        }
        frame.at = LoopPoint::Reflect;
        frame.current = Some(current);
        turn.keep(&frame)?;
        Ok(Flow::Onward)
    }

    /// Asks for the judgement, and goes on by it.
    pub async fn reflect(&self, turn: &Turn<'_>, mut frame: LoopFrame) -> Result<Flow, ActionError> {
        turn.in_round(frame.behaviors);
        let Some(current) = frame.current.clone() else {
            return Err(ActionError::failed("frame-unreadable", "the stored state of this action has no behavior"));
        };
        let judged = match &self.source {
            BehaviorSource::Model(asked) => self.judged_by_model(turn, &frame, &current, asked).await?,
            BehaviorSource::Server(name) => {
                let server = turn.services.outside.servers.server(name)?;
                let state = turn.notebook_state();
                let seen = self.observe(turn, &state, Some(&current.counts), Some(server.as_ref())).await?;
                match server.reflection(&seen).await {
                    Ok(answer) => reflection(&answer).map_err(|rubbish| rubbish.message),
                    Err(error) => unusable(error)?,
                }
            }
        };
        match judged {
            Ok(judged) => {
                frame.rubbish = 0;
                frame.current = None;
                self.conclude(turn, frame, current, Some(judged))
            }
            Err(fault) => self.again(turn, frame, &fault),
        }
    }

    fn conclude(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        current: Current,
        judged: Option<Reflection>,
    ) -> Result<Flow, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        let mut state = turn.notebook_state();
        let said = if current.cut_short { Transition::default() } else { around(&current).transition };
        if let Some(judged) = &judged {
            update(turn, &mut state, &judged.context_update);
        }
        let judgement = judged.as_ref().map(|judged| &judged.transition);
        let plan = judgement.and_then(|judgement| judgement.workflow_update.as_ref());
        if let Some(plan) = plan.or(said.workflow_update.as_ref()) {
            match plan.check() {
                Ok(()) => state.workflow_pending = Some(plan.clone()),
                Err(refusal) => turn.warn("bad-plan", msg!("a plan was not accepted: {}", refusal.message), None),
            }
        }
        // An action may have completed the step; another plan that takes its place now completes nothing.
        let completed = |there: &PlanTarget| state.location.completed_steps.contains(&there.step);
        let completed = current.began_in.as_ref().is_some_and(completed) && plan::here(&state) != current.began_in;
        state.end_behavior(&at);
        let moved_on = plan::here(&state) != current.began_in;
        let verdict = verdict(&current, judged.as_ref(), &said, completed);
        let goes_on = judgement.and_then(|judgement| judgement.continue_behaviors).or(said.continue_behaviors);
        let wanted = judgement.filter(|judgement| moves(judgement)).unwrap_or(&said);
        let then = self.then(turn, &mut state, &frame, (wanted, &verdict, goes_on, moved_on), &at);
        let (by, why) = match &then {
            AfterBehavior::Over(ExitReason::MaxRoundsReached) if !verdict.achieved => {
                ("bound", msg!("the loop reached its maximum of {} behaviors", frame.behaviors))
            }
            _ => (verdict.by, verdict.why.clone()),
        };
        let mut why = why;
        why.change_texts(&mut |text| *text = cut_in_the_middle(text, MOST_TOLD));
        turn.tell_notebook(Event::Behavior {
            behavior_id: current.id.clone(),
            iteration: current.iteration,
            target: cut_in_the_middle(&current.target, MOST_TOLD),
            feedback: json!(current.counts),
            target_achieved: verdict.achieved,
            decided_by: by,
            why: why.clone(),
        });
        frame.feedback = Some(current.counts);
        frame.current = None;
        frame.at = LoopPoint::Ask;
        if let AfterBehavior::Topic(_) = then {
            state.moves = state.moves.saturating_add(1);
        }
        turn.set_notebook_state(state);
        let outcome = |reason| self.outcome(turn, &frame, reason, verdict.achieved, &why);
        match then {
            AfterBehavior::Ask => {
                turn.keep(&frame)?;
                Ok(Flow::Onward)
            }
            AfterBehavior::Topic(topic) => {
                let why = msg!("{} moves the session there", self.source_in_words());
                Ok(Flow::Goto(Box::new(outcome(ExitReason::ExitCriteriaMet)), topic, why))
            }
            AfterBehavior::Over(reason) => Ok(Flow::done(outcome(reason))),
        }
    }

    /// Where the session goes on; the location of the state is moved there.
    fn then(
        &self,
        turn: &Turn<'_>,
        state: &mut NotebookState,
        frame: &LoopFrame,
        (wanted, verdict, goes_on, moved_on): (&Transition, &Verdict, Option<bool>, bool),
        at: &str,
    ) -> AfterBehavior {
        let more = if frame.behaviors < self.last(turn) {
            AfterBehavior::Ask
        } else {
            AfterBehavior::Over(ExitReason::MaxRoundsReached)
        };
        let before = plan::here(state);
        if let Some(there) = self.destination(turn, state, wanted, at)
            && before.as_ref() != Some(&there)
        {
            if verdict.achieved && !moved_on {
                // Completing a step that the plan has cannot be refused.
                let _ = state.complete_step(None, at);
            }
            let _ = state.go_to(Some(&there.stage), Some(&there.step), at);
            let elsewhere = plan::is_topic(turn.program, &there) && there.step != turn.topic.id;
            return if elsewhere { AfterBehavior::Topic(there.step) } else { more };
        }
        if verdict.achieved {
            let stage = before.map(|here| here.stage);
            if !moved_on {
                let _ = state.complete_step(None, at);
            }
            // A step of the same stage that the script does not have is the loop's own to go on with.
            let next = plan::here(state).filter(|next| Some(&next.stage) == stage.as_ref());
            return match next {
                Some(next) if !plan::is_topic(turn.program, &next) => more,
                _ => AfterBehavior::Over(ExitReason::ExitCriteriaMet),
            };
        }
        match goes_on {
            Some(false) => AfterBehavior::Over(ExitReason::ExitCriteriaMet),
            _ => more,
        }
    }

    /// The step that a transition names, checked first: one that the plan does not have moves nothing.
    fn destination(&self, turn: &Turn<'_>, state: &NotebookState, wanted: &Transition, at: &str) -> Option<PlanTarget> {
        let (stage, step) = (wanted.next_stage_id.as_deref(), wanted.next_step_id.as_deref());
        let there = match plan::meant(state, stage, step, at) {
            Ok(there) => there?,
            Err(refusal) => {
                let message = msg!("{} cannot move to that location: {}", self.source_in_words(), refusal.message);
                turn.warn("unknown-step", message, Some(Message::word("the session stays where it is")));
                return None;
            }
        };
        let elsewhere = plan::is_topic(turn.program, &there) && there.step != turn.topic.id;
        if elsewhere && state.moves >= MOST_MOVES {
            let message =
                msg!("{} has moved the session {MOST_MOVES} times; it now stays here", self.source_in_words());
            turn.warn("too-many-moves", message, None);
            return None;
        }
        Some(there)
    }

    /// The last behavior that there may be.
    pub fn last(&self, turn: &Turn<'_>) -> u32 {
        turn.last_round(self.max_behaviors)
    }

    fn outcome(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        reason: ExitReason,
        achieved: bool,
        why: &Message,
    ) -> Outcome {
        let fields = [
            ("current_round", Value::from(frame.behaviors)),
            ("max_rounds", Value::from(self.last(turn))),
            ("exit_reason", Value::from(reason.name())),
            ("target_achieved", Value::from(achieved)),
            ("behaviors", Value::from(frame.behaviors)),
            ("actions_executed", Value::from(frame.executed)),
            ("actions_failed", Value::from(frame.failed)),
            ("why", json!(why)),
        ];
        let metadata: Map<String, Value> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Outcome { metadata, ..Outcome::done(reason) }
    }
}

/// The response of a behavior, without its actions. It was read once already, when it came.
fn around(current: &Current) -> Response {
    response(&current.around).unwrap_or_default()
}

fn moves(transition: &Transition) -> bool {
    transition.next_stage_id.is_some() || transition.next_step_id.is_some()
}

/// Reflection decides, else the transition; `metadata` never does. An action that ended the step counts as a transition that says so.
fn verdict(current: &Current, judged: Option<&Reflection>, said: &Transition, completed: bool) -> Verdict {
    if current.cut_short {
        return Verdict { achieved: false, by: "interrupted", why: Message::word("the behavior was cut short") };
    }
    if let Some(judged) = judged {
        let judgement = &judged.transition;
        if let Some(achieved) = judged.target_achieved.or(judgement.target_achieved) {
            let why = if judged.reason.is_empty() { &judgement.reason } else { &judged.reason };
            return Verdict { achieved, by: "reflection", why: Message::text(why.clone()) };
        }
    }
    match said.target_achieved {
        Some(achieved) => Verdict { achieved, by: "transition", why: Message::text(said.reason.clone()) },
        None if completed => {
            Verdict { achieved: true, by: "transition", why: Message::word("an action completed the step") }
        }
        None => Verdict { achieved: false, by: "nobody", why: Message::text(said.reason.clone()) },
    }
}

/// Changes the context: declared variables through the turn, so that they keep their types and stay hidden where they are
/// sensitive; what no script declares goes to the notebook.
fn update(turn: &Turn<'_>, state: &mut NotebookState, update: &ContextUpdate) {
    if update.variables.len() > MOST_SET {
        let message = msg!("a response sets more than {MOST_SET} variables; the rest were ignored");
        turn.warn("context-left-out", message, None);
    }
    for (name, value) in update.variables.iter().take(MOST_SET) {
        let declared = turn.work().scopes.declaration(name).is_some();
        if declared {
            if let Err(error) = turn.set(name, value.clone(), None) {
                turn.warn("variable-misfit", msg!("a response cannot set a variable: {error}"), None);
            }
        } else if let Err(refusal) = state.keep_variable(name, value.clone()) {
            let message = msg!("a variable in a response was ignored: {}", refusal.message);
            turn.warn("context-left-out", message, None);
        }
    }
    for left_out in update.apply(state) {
        turn.warn("context-left-out", left_out, None);
    }
}
