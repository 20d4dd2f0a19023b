//! Performs the actions of a behavior, one in each turn: those of the frame, or those of a stream as they are received.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::failures::SentAction;
use crate::actions::behaviors::frame::{ActionInProgress, Current, LoopFrame};
use crate::actions::notebook::custom::{CustomOutcome, Progress, advance as advance_custom};
use crate::actions::notebook::perform::{
    ActionOrigin, EXEC, PerformOptions, PerformStep, PerformedAction, advance, report, start,
};
use crate::effects::behaviors::BehaviorPiece;
use crate::notebook::action::{Read, read_with_notes};
use crate::notebook::effects::quoted;
use crate::program::flow::{ActionError, Call, Flow};
use crate::program::interrupted_effects::interrupted_error;
use crate::program::open_question::OpenQuestion;
use crate::program::outcome::Outcome;
use crate::program::question::Asked;
use crate::program::turn::Turn;
use bcc_lang::script::fields::shortened;
use bcc_lang::value::exact::ExactValues;

/// `last_action_result` after a successful action.
pub(crate) const SUCCESS: &str = "success";

/// `last_action_result` of a behavior that ended before all of its actions were received.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The next part of a behavior.
enum Next {
    Action(Value),
    /// All of its actions are done.
    End,
    /// The remaining actions cannot be received, for this reason.
    Failed(Message),
}

impl LoopConfig {
    /// Performs the next action, or ends the behavior if there is none.
    pub(crate) async fn perform_next(&self, turn: &Turn<'_>, mut frame: LoopFrame) -> Result<Flow, ActionError> {
        turn.in_round(frame.behaviors);
        let Some(mut current) = frame.current.take() else {
            return Err(ActionError::failed("frame-unreadable", "the stored state of this action has no behavior"));
        };
        let flow = match current.in_progress.take() {
            Some(in_progress) => self.continue_action(turn, &mut current, in_progress).await?,
            None => match self.next(turn, &mut current).await {
                Next::Action(action) => self.start_action(turn, &mut current, &action).await?,
                Next::End => return self.finish_actions(turn, frame, current).await,
                Next::Failed(why) => {
                    let message = msg!("a behavior from {} was cut short: {why}", self.source_name());
                    let help = Message::word(
                        "the actions that were done count; the source is informed and asked for the next behavior",
                    );
                    turn.warn("behavior-cut-short", message, Some(help));
                    INTERRUPTED.clone_into(&mut current.counts.last_action_result);
                    current.cut_short = true;
                    return self.finish_actions(turn, frame, current).await;
                }
            },
        };
        frame.current = Some(current);
        turn.store_state(&frame)?;
        Ok(flow.unwrap_or(Flow::Onward))
    }

    async fn next(&self, turn: &Turn<'_>, current: &mut Current) -> Next {
        if current.received < self.max_actions
            && let Some(action) = current.actions.pop_front()
        {
            current.received += 1;
            return Next::Action(action);
        }
        let Some(name) = current.stream.take() else { return Next::End };
        let Some(mut stream) = turn.services.host.pending_responses.take(&name) else {
            return Next::Failed(Message::word("the process that was receiving it ended"));
        };
        let _question = match &self.source {
            BehaviorSource::Server(server) => Some(OpenQuestion::ask(turn, Asked::Server(server))),
            BehaviorSource::Model(_) => None,
        };
        let mut are_too_many = false;
        loop {
            match stream.next().await {
                // What follows from the behavior comes after them.
                Ok(Some(BehaviorPiece::Action(_))) if current.received >= self.max_actions => {
                    if !std::mem::replace(&mut are_too_many, true) {
                        self.warn_too_many_actions(turn);
                    }
                }
                Ok(Some(BehaviorPiece::Action(action))) => {
                    turn.services.host.pending_responses.insert(&name, stream);
                    current.stream = Some(name);
                    current.received += 1;
                    return Next::Action(action);
                }
                Ok(Some(BehaviorPiece::Response(response))) => {
                    let mut state = turn.notebook_state();
                    let before = current.actions.len();
                    if let Err(error) = current.set_response(&mut state, response) {
                        return Next::Failed(error);
                    }
                    turn.set_notebook_state(state);
                    // The response around a stream has no actions of its own; if it does, they were already sent before.
                    current.actions.truncate(before);
                }
                Ok(None) => return Next::End,
                // All that is carried out has arrived.
                Err(_) if are_too_many => return Next::End,
                Err(error) => return Next::Failed(error.message),
            }
        }
    }

    /// Starts an action. Returns the flow to run first if the action needs more turns.
    async fn start_action(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        action: &Value,
    ) -> Result<Option<Flow>, ActionError> {
        let options = PerformOptions {
            by: self.by(),
            action_id: Some(format!("{}-{}", current.id, current.received)),
            timeout: self.timeout,
        };
        let mut notes = Vec::new();
        let read = read_with_notes(action, &mut notes);
        for note in notes {
            let name = shortened(SentAction::unreadable(action).name);
            current.counts.add_not_understood([format!("a part of the action `{name}` was ignored: {note}")]);
            let message = msg!("an action from {} was partly ignored: {note}", self.source_name());
            turn.warn("action-passed-over", message, Some(Message::word("the rest of the action was carried out")));
        }
        match read {
            Ok(Read::Known(action)) => {
                let step = start(turn, &action, options).await?;
                record_step(turn, current, SentAction::of(&action), step).await
            }
            Ok(Read::Unknown { name, fields }) if turn.program.custom.contains_key(&name) => {
                let began = turn.services.clock.elapsed_ms();
                let inputs = Box::new(fields.into_iter().map(|(name, value)| (name, value.into())).collect());
                let in_progress = ActionInProgress::Custom { name, inputs, progress: Progress::default(), began };
                self.continue_action(turn, current, in_progress).await
            }
            Ok(Read::Unknown { name, .. }) => {
                let unknown = shortened(&name);
                current.counts.add_not_understood([format!("there is no action `{unknown}`: it was skipped")]);
                let message = msg!("there is no action `{}`: it was skipped", unknown);
                let help = Message::word(
                    "use a notebook action or an action kind of the project (`[kinds]` in bcc-script.toml)",
                );
                turn.warn("unknown-action", message, Some(help));
                Ok(None)
            }
            Err(error) => {
                let done = PerformedAction { rejected: Some("unreadable-action"), ..PerformedAction::default() };
                let done = done.failed(turn, &options, error.message);
                report(turn, "unreadable", options.by, &done, vec![]);
                current.count(turn, SentAction::unreadable(action), &done).await?;
                Ok(None)
            }
        }
    }

    /// Continues an action that takes several turns.
    async fn continue_action(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        in_progress: ActionInProgress,
    ) -> Result<Option<Flow>, ActionError> {
        match in_progress {
            ActionInProgress::Code(running) => {
                let step = advance(turn, *running).await?;
                record_step(turn, current, SentAction { name: EXEC, id: None }, step).await
            }
            ActionInProgress::Custom { name, inputs, progress, began } => {
                self.continue_custom_action(turn, current, (name, *inputs), progress, began).await
            }
        }
    }

    async fn continue_custom_action(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        (name, inputs): (String, ExactValues),
        mut progress: Progress,
        began: u64,
    ) -> Result<Option<Flow>, ActionError> {
        let options = PerformOptions {
            by: self.by(),
            action_id: Some(format!("{}-{}", current.id, current.received)),
            timeout: None,
        };
        let ms = turn.services.clock.elapsed_ms().saturating_sub(began);
        let Some(kind) = turn.program.custom.get(&name) else {
            let done = PerformedAction::default().failed(turn, &options, "this action kind no longer exists");
            current.count(turn, SentAction { name: &name, id: None }, &done).await?;
            return Ok(None);
        };
        // It may change what the code of a cell reads.
        let mut state = turn.notebook_state();
        if state.ran_when_added.take().is_some() {
            turn.set_notebook_state(state);
        }
        let mut effects = vec![];
        let done = match advance_custom(turn, kind, &inputs, &mut progress).await {
            Ok(CustomOutcome::Continue(flow)) => {
                // The next action of the loop may call the same skill.
                let flow = match flow {
                    Flow::Call(call) => Flow::Call(Call { part: 0, ..call }),
                    other => other,
                };
                current.in_progress =
                    Some(ActionInProgress::Custom { name, inputs: Box::new(inputs), progress, began });
                return Ok(Some(flow));
            }
            // An interrupted command that must fail ends the loop; any other failure concerns this action only.
            Ok(CustomOutcome::Done(_)) if progress.given_up => return Err(interrupted_error()),
            Ok(CustomOutcome::Done(outcome)) if succeeded(&outcome) => {
                effects = record_result(turn, &name, &outcome.extracted_variables);
                PerformedAction { success: true, ms, ..PerformedAction::default() }
            }
            Ok(CustomOutcome::Done(outcome)) => {
                let error = outcome.error_message().unwrap_or(Message::word("it ended with an error"));
                PerformedAction { ms, ..PerformedAction::default() }.failed(turn, &options, error)
            }
            Err(ActionError::Failed { message, .. } | ActionError::Prompt { message, .. }) => {
                turn.close_effect("the action failed");
                PerformedAction { ms, ..PerformedAction::default() }.failed(turn, &options, message)
            }
            Err(error) => return Err(error),
        };
        report(turn, &name, options.by, &done, effects);
        current.count(turn, SentAction { name: &name, id: None }, &done).await?;
        Ok(None)
    }

    /// The origin of the actions.
    pub(crate) fn by(&self) -> ActionOrigin {
        match self.source {
            BehaviorSource::Model(_) => ActionOrigin::Model,
            BehaviorSource::Server(_) => ActionOrigin::Server,
        }
    }
}

fn succeeded(outcome: &Outcome) -> bool {
    outcome.success && !outcome.exit_reason.is_some_and(|reason| reason.fails())
}

/// Records a step of an action: counts the action if it is done, else stores it and returns the flow to run first.
/// Errors: The action was interrupted and must fail, which ends the loop; the notebook cannot be read.
async fn record_step(
    turn: &Turn<'_>,
    current: &mut Current,
    sent: SentAction<'_>,
    step: PerformStep,
) -> Result<Option<Flow>, ActionError> {
    match step {
        PerformStep::Continue(flow, running) => {
            current.in_progress = Some(ActionInProgress::Code(running));
            Ok(Some(flow))
        }
        PerformStep::Done(done) if done.given_up => Err(interrupted_error()),
        PerformStep::Done(done) => {
            current.count(turn, sent, &done).await?;
            Ok(None)
        }
    }
}

/// Records what an action kind of the project gave back: as an effect, and as a variable of the notebook, so that its source sees both.
fn record_result(turn: &Turn<'_>, name: &str, result: &ExactValues) -> Vec<String> {
    let result: Map<String, Value> =
        result.iter().map(|(name, value)| (name.clone(), value.clone().into_value())).collect();
    let result = Value::Object(result);
    let mut state = turn.notebook_state();
    let effect = format!("Ran {name}: {}", quoted(&result.to_string()));
    if let Err(rejection) = state.store_variable(&format!("{name}_result"), result) {
        let message = msg!("the result of `{name}` was not saved: {}", rejection.message);
        turn.warn("context-left-out", message, None);
    }
    state.effects.set_current(vec![effect.clone()]);
    turn.set_notebook_state(state);
    vec![effect]
}
