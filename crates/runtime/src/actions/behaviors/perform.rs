//! The actions of a behavior, one in each turn: those of the frame, or those of a stream as they arrive.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{ActionInProgress, Current, LoopFrame};
use crate::actions::notebook::custom::{CustomOutcome, Progress, advance as advance_custom};
use crate::actions::notebook::perform::{
    ActionOrigin, PerformOptions, PerformStep, PerformedAction, advance, start, tell,
};
use crate::effects::behaviors::BehaviorPiece;
use crate::notebook::action::{Read, read_noting};
use crate::notebook::protocol::feedback::Feedback;
use crate::program::flow::{ActionError, Flow};
use crate::program::interrupted_effects::given_up;
use crate::program::outcome::Outcome;
use crate::program::turn::Turn;
use bcc_lang::script::fields::shortened;

/// `last_action_result` of a behavior whose last action did what it was to do.
pub const SUCCESS: &str = "success";

/// `last_action_result` of a behavior that ended before all of its actions were there.
pub const INTERRUPTED: &str = "interrupted";

/// What is next in a behavior.
enum Next {
    Action(Value),
    /// Nothing: all of its actions are done.
    End,
    /// Nothing: the rest of it is lost, for this reason.
    Lost(Message),
}

impl LoopConfig {
    /// Carries out the next action, or ends the behavior when there is none.
    pub async fn carry(&self, turn: &Turn<'_>, mut frame: LoopFrame) -> Result<Flow, ActionError> {
        turn.in_round(frame.behaviors);
        let Some(mut current) = frame.current.take() else {
            return Err(ActionError::failed("frame-unreadable", "the stored state of this action has no behavior"));
        };
        let first = match current.under_way.take() {
            Some(under_way) => self.go_on(turn, &mut current, under_way).await?,
            None => match self.next(turn, &mut current).await {
                Next::Action(action) => self.begin_action(turn, &mut current, &action).await?,
                Next::End => return self.carried_out(turn, frame, current).await,
                Next::Lost(why) => {
                    let message = msg!("a behavior from {} was cut short: {why}", self.source_in_words());
                    let help = Message::word(
                        "the actions that were done count; the source is informed and asked for the next behavior",
                    );
                    turn.warn("behavior-cut-short", message, Some(help));
                    INTERRUPTED.clone_into(&mut current.counts.last_action_result);
                    current.cut_short = true;
                    return self.carried_out(turn, frame, current).await;
                }
            },
        };
        frame.current = Some(current);
        turn.keep(&frame)?;
        Ok(first.unwrap_or(Flow::Onward))
    }

    async fn next(&self, turn: &Turn<'_>, current: &mut Current) -> Next {
        if current.seen < self.max_actions
            && let Some(action) = current.actions.pop_front()
        {
            current.seen += 1;
            return Next::Action(action);
        }
        let Some(name) = current.arriving.take() else { return Next::End };
        let Some(mut arriving) = turn.services.outside.arriving.take(&name) else {
            return Next::Lost(Message::word("the process that was receiving it ended"));
        };
        loop {
            match arriving.next().await {
                Ok(Some(BehaviorPiece::Action(_))) if current.seen >= self.max_actions => {
                    self.warn_of_many(turn);
                    return Next::End;
                }
                Ok(Some(BehaviorPiece::Action(action))) => {
                    turn.services.outside.arriving.keep(&name, arriving);
                    current.arriving = Some(name);
                    current.seen += 1;
                    return Next::Action(action);
                }
                Ok(Some(BehaviorPiece::Response(around))) => {
                    let mut state = turn.notebook_state();
                    let before = current.actions.len();
                    if let Err(fault) = current.surround(&mut state, around) {
                        return Next::Lost(fault);
                    }
                    turn.set_notebook_state(state);
                    // What stands around a stream has no actions of its own; where it has, they were all sent before.
                    current.actions.truncate(before);
                }
                Ok(None) => return Next::End,
                Err(error) => return Next::Lost(error.message),
            }
        }
    }

    /// Begins an action. Gives the flow that comes first when it takes more than this turn.
    async fn begin_action(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        action: &Value,
    ) -> Result<Option<Flow>, ActionError> {
        let how = PerformOptions {
            by: self.by(),
            action_id: Some(format!("{}-{}", current.id, current.seen)),
            timeout: self.timeout,
        };
        let mut notes = Vec::new();
        let read = read_noting(action, &mut notes);
        for note in notes {
            let message = msg!("an action from {} was partly ignored: {note}", self.source_in_words());
            turn.warn("action-passed-over", message, Some(Message::word("the rest of the action was carried out")));
        }
        match read {
            Ok(Read::Known(action)) => {
                let step = start(turn, &action, how).await?;
                taken(current, step)
            }
            Ok(Read::Other { name, fields }) if turn.program.custom.contains_key(&name) => {
                let began = turn.services.clock.elapsed_ms();
                let under_way =
                    ActionInProgress::Custom { name, inputs: Box::new(fields), progress: Progress::default(), began };
                self.go_on(turn, current, under_way).await
            }
            Ok(Read::Other { name, .. }) => {
                let message = msg!("there is no action `{}`: it was skipped", shortened(&name));
                let help = Message::word(
                    "use a notebook action or an action kind of the project (`[kinds]` in bcc-script.toml)",
                );
                turn.warn("unknown-action", message, Some(help));
                Ok(None)
            }
            Err(fault) => {
                let done = PerformedAction::default().failed(turn, &how, fault.message);
                tell(turn, "unreadable", how.by, &done, vec![]);
                count(&mut current.counts, &done);
                Ok(None)
            }
        }
    }

    /// Goes on with an action that takes several turns.
    async fn go_on(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        under_way: ActionInProgress,
    ) -> Result<Option<Flow>, ActionError> {
        match under_way {
            ActionInProgress::Code(running) => {
                let step = advance(turn, *running).await?;
                taken(current, step)
            }
            ActionInProgress::Custom { name, inputs, progress, began } => {
                self.go_on_custom(turn, current, (name, *inputs), progress, began).await
            }
        }
    }

    async fn go_on_custom(
        &self,
        turn: &Turn<'_>,
        current: &mut Current,
        (name, inputs): (String, Map<String, Value>),
        mut progress: Progress,
        began: u64,
    ) -> Result<Option<Flow>, ActionError> {
        let how = PerformOptions {
            by: self.by(),
            action_id: Some(format!("{}-{}", current.id, current.seen)),
            timeout: None,
        };
        let ms = turn.services.clock.elapsed_ms().saturating_sub(began);
        let Some(kind) = turn.program.custom.get(&name) else {
            let done = PerformedAction::default().failed(turn, &how, "this action kind no longer exists");
            count(&mut current.counts, &done);
            return Ok(None);
        };
        let done = match advance_custom(turn, kind, &inputs, &mut progress).await {
            Ok(CustomOutcome::On(flow)) => {
                current.under_way = Some(ActionInProgress::Custom { name, inputs: Box::new(inputs), progress, began });
                return Ok(Some(flow));
            }
            // What was interrupted and is to fail ends the loop; any other failure is one of this action alone.
            Ok(CustomOutcome::Done(_)) if progress.given_up => return Err(given_up()),
            Ok(CustomOutcome::Done(outcome)) if went_well(&outcome) => {
                PerformedAction { success: true, ms, ..PerformedAction::default() }
            }
            Ok(CustomOutcome::Done(outcome)) => {
                let error = outcome.error_message().unwrap_or(Message::word("it ended with an error"));
                PerformedAction { ms, ..PerformedAction::default() }.failed(turn, &how, error)
            }
            Err(ActionError::Failed { message, .. }) => {
                turn.close_effect("the action failed");
                PerformedAction { ms, ..PerformedAction::default() }.failed(turn, &how, message)
            }
            Err(error) => return Err(error),
        };
        tell(turn, &name, how.by, &done, vec![]);
        count(&mut current.counts, &done);
        Ok(None)
    }

    /// Who asks for the actions.
    pub fn by(&self) -> ActionOrigin {
        match self.source {
            BehaviorSource::Model(_) => ActionOrigin::Model,
            BehaviorSource::Server(_) => ActionOrigin::Server,
        }
    }
}

fn went_well(outcome: &Outcome) -> bool {
    outcome.success && !outcome.exit_reason.is_some_and(|reason| reason.fails())
}

/// What a step of an action came to: counted when it is done, else kept, with the flow that comes first.
/// Errors: When it was interrupted and is to fail: that ends the loop.
fn taken(current: &mut Current, step: PerformStep) -> Result<Option<Flow>, ActionError> {
    match step {
        PerformStep::On(flow, running) => {
            current.under_way = Some(ActionInProgress::Code(running));
            Ok(Some(flow))
        }
        PerformStep::Done(done) if done.given_up => Err(given_up()),
        PerformStep::Done(done) => {
            count(&mut current.counts, &done);
            Ok(None)
        }
    }
}

/// Counts an action that was carried out.
fn count(counts: &mut Feedback, done: &PerformedAction) {
    counts.actions_executed += 1;
    counts.execution_time_ms = counts.execution_time_ms.saturating_add(done.ms);
    counts.sections_added += done.sections_added;
    counts.cells_added += done.cells_added;
    counts.code_cells_executed += done.executed;
    if done.success {
        counts.actions_succeeded += 1;
        SUCCESS.clone_into(&mut counts.last_action_result);
    } else {
        counts.actions_failed += 1;
        counts.last_action_result = done.error.as_ref().map_or_else(|| "failed".to_owned(), ToString::to_string);
    }
}
