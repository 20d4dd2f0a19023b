//! Reads what is stored of the output of a command.

use bcc_lang::message::msg;
use serde_json::Value;

use crate::error::EngineError;
use crate::export::{masker, masker_of, parse};
use bcc_runtime::effects::output::OutputStream;
use bcc_store::contract::Store;

/// The number of events that are read at once.
const PAGE: usize = 100;

/// What is stored of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOutput {
    pub action: String,
    /// The output, in which sensitive values are masked and bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The number of bytes that the command printed.
    pub bytes: u64,
    /// Whether the middle of the output is not missing.
    pub is_complete: bool,
}

/// The output of the last run of the command `action`, or of the last command of the session.
///
/// # Errors
/// `Usage` if there is no such command, or its output is not stored.
pub async fn command_output(
    store: &dyn Store,
    id: &str,
    action: Option<&str>,
    stream: OutputStream,
) -> Result<StoredOutput, EngineError> {
    let mut found: Option<Value> = None;
    let mut after = 0;
    loop {
        let rows = store.journal_by_kind(id, "outcome", after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in rows {
            let event: Value = parse(&row.body, "event")?;
            let is_command = event.pointer("/metadata/stdout_bytes").is_some_and(Value::is_u64);
            if is_command && action.is_none_or(|action| action_of(&event) == action) {
                found = Some(event);
            }
        }
    }
    let Some(event) = found else {
        return Err(match action {
            Some(action) => EngineError::usage(msg!("the session `{id}` has no command `{action}` that has ended")),
            None => EngineError::usage(msg!("no command of the session `{id}` has ended")),
        }
        .with_help("`bcc-script sessions export ID` lists the outcomes of all actions"));
    };
    let (name, action) = (stream.name(), action_of(&event).to_owned());
    let field = |suffix: &str| event.pointer(&format!("/metadata/{name}{suffix}"));
    let text = match field("_sha256").and_then(Value::as_str) {
        Some(sha256) => store.text(id, sha256).await?,
        None => field("").and_then(Value::as_str).map(str::to_owned),
    };
    let Some(text) = text else {
        let message = msg!("the output of the command `{action}` is not stored");
        return Err(EngineError::usage(message).with_help("it is not stored if a sensitive variable receives it"));
    };
    let bytes = field("_bytes").and_then(Value::as_u64).unwrap_or_default();
    let row = store.session(id).await?;
    let masked = match &row {
        Some(row) => masker_of(store, row).await?.text(&text),
        None => masker(&store.variables(id).await?, &[])?.text(&text),
    };
    let is_complete = field("_kept_truncated").is_none();
    Ok(StoredOutput { action, text: masked, bytes, is_complete })
}

fn action_of(event: &Value) -> &str {
    event.pointer("/location/action_id").and_then(Value::as_str).unwrap_or_default()
}
