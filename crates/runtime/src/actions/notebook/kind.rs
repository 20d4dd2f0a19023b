//! What the notebook kinds have in common: an action that was written is carried out, and ends with what came of it.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::notebook::author_action::AuthorAction;
use crate::actions::notebook::perform::{PerformOptions, PerformStep, PerformedAction, RunningAction, advance, start};
use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow};
use crate::program::interrupted_effects::given_up;
use crate::program::kind::Described;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;

/// What the permission to run code is called in bcc-script.toml.
pub const NEEDS_EXEC: &str = "exec";

/// A notebook action of a script.
pub struct NotebookKind {
    pub written: AuthorAction,
    /// How long its code may run.
    pub timeout: Option<Duration>,
    /// Whether the action fails when its code does.
    pub fails: bool,
}

/// What it remembers between turns.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<RunningAction>,
}

pub fn described(runs: bool) -> Described {
    let needs = if runs { vec![NEEDS_EXEC] } else { vec![] };
    Described { max_rounds: 1, needs, ..Described::default() }
}

#[async_trait]
impl Action for NotebookKind {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let Kept { running } = turn.state()?;
        let step = match running {
            Some(running) => advance(turn, running).await?,
            None => {
                let action = self.written.action(turn)?;
                start(turn, &action, PerformOptions { timeout: self.timeout, ..PerformOptions::default() }).await?
            }
        };
        match step {
            PerformStep::On(flow, running) => {
                turn.keep(&Kept { running: Some(*running) })?;
                Ok(flow)
            }
            PerformStep::Done(done) => self.ended(*done),
        }
    }
}

impl NotebookKind {
    fn ended(&self, done: PerformedAction) -> Result<Flow, ActionError> {
        if done.given_up {
            return Err(given_up());
        }
        // What to do about it is told where the error is, and only an error that ends the turn has a place for it.
        if let (Some(code), Some(help)) = (done.refused, &done.help) {
            let message = done.error.unwrap_or_default();
            return Err(ActionError::Failed { code, message, help: Some(help.clone()) });
        }
        let reason = match done.refused {
            Some(_) => ExitReason::Error,
            None if done.success || !self.fails => ExitReason::ExitCriteriaMet,
            None => ExitReason::Failed,
        };
        let mut metadata = Map::new();
        metadata.insert("exit_reason".into(), reason.name().into());
        metadata.insert("success".into(), done.success.into());
        let mut tell = |name: &str, value: Value| {
            if !value.is_null() {
                metadata.insert(name.to_owned(), value);
            }
        };
        tell("cell_id", done.cell_id.into());
        tell("ended", json!(done.ended));
        if let Value::Object(result) = done.result {
            result.into_iter().for_each(|(name, value)| tell(&name, value));
        }
        if reason.fails() {
            tell("error_message", json!(done.error));
        }
        // What its code does wrong is no failure of the action, unless the author wants that.
        let success = !reason.fails();
        Ok(Flow::done(Outcome { success, completed: true, exit_reason: Some(reason), metadata, ..Outcome::default() }))
    }
}
