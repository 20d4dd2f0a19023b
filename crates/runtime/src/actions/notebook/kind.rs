//! Shared code of the notebook kinds: performs an action of a script and builds its outcome.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::notebook::author_action::AuthorAction;
use crate::actions::notebook::perform::{PerformOptions, PerformStep, PerformedAction, RunningAction, advance, start};
use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow};
use crate::program::interrupted_effects::interrupted_error;
use crate::program::kind::ActionProperties;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;

/// The name of the permission to run code in bcc-script.toml.
pub(crate) const NEEDS_EXEC: &str = "exec";

/// A notebook action of a script.
pub(crate) struct NotebookKind {
    pub action: AuthorAction,
    /// How long its code may run.
    pub timeout: Option<Duration>,
    /// Whether the action fails when its code does.
    pub fail_on_error: bool,
    /// Whether a model may change its code.
    pub auto_debug: bool,
}

/// The state between turns.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<RunningAction>,
}

pub fn described(runs: bool) -> ActionProperties {
    let needs = if runs { vec![NEEDS_EXEC.to_owned()] } else { vec![] };
    ActionProperties { max_rounds: 1, needs, ..ActionProperties::default() }
}

#[async_trait]
impl Action for NotebookKind {
    fn asks_model(&self) -> bool {
        self.auto_debug
    }

    fn announces_effects(&self) -> bool {
        !self.auto_debug
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let StoredState { running } = turn.state()?;
        let step = match running {
            Some(running) => advance(turn, running).await?,
            None => {
                let action = self.action.action(turn)?;
                start(turn, &action, PerformOptions { timeout: self.timeout, ..PerformOptions::default() }).await?
            }
        };
        match step {
            PerformStep::Continue(flow, running) => {
                turn.store_state(&StoredState { running: Some(*running) })?;
                Ok(flow)
            }
            PerformStep::Done(done) => self.finish(*done),
        }
    }
}

impl NotebookKind {
    fn finish(&self, done: PerformedAction) -> Result<Flow, ActionError> {
        if done.given_up {
            return Err(interrupted_error());
        }
        // The help is shown with an error, and only an error that ends the turn can have help.
        if let (Some(code), Some(help)) = (done.rejected, &done.help) {
            let message = done.error.unwrap_or_default();
            return Err(ActionError::Failed { code, message, help: Some(help.clone()) });
        }
        let reason = match done.rejected {
            Some(_) => ExitReason::Error,
            None if done.success || !self.fail_on_error => ExitReason::ExitCriteriaMet,
            None => ExitReason::Failed,
        };
        let mut metadata = Map::new();
        metadata.insert("exit_reason".into(), reason.name().into());
        metadata.insert("success".into(), done.success.into());
        let mut insert = |name: &str, value: Value| {
            if !value.is_null() {
                metadata.insert(name.to_owned(), value);
            }
        };
        insert("cell_id", done.cell_id.into());
        insert("ended", json!(done.ended));
        if let Value::Object(result) = done.result {
            result.into_iter().for_each(|(name, value)| insert(&name, value));
        }
        if reason.fails() {
            insert("error_message", json!(done.error));
        }
        // Errors of its code are not failures of the action, unless the author requests it.
        let success = !reason.fails();
        Ok(Flow::done(Outcome { success, completed: true, exit_reason: Some(reason), metadata, ..Outcome::default() }))
    }
}
