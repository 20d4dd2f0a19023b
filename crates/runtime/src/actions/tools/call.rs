//! One call of a tool under the rules of the script: permitted, checked, decided about, announced, made and closed, turn by turn.

use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::tools::result::{ToolResult, ToolStatus};
use crate::program::flow::{ActionError, Flow};
use crate::program::turn::Turn;

/// A call that an author or a model wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
}

/// How far a call is. The action that makes the call stores it, and passes it on in its next turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCallState {}

/// What the action must do after a step of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStep {
    /// Store the state and return this flow. The next turn calls [`proceed`] again.
    Flow(Flow),
    /// The call is over.
    Ended(ToolResult),
}

/// Continues a call. An action makes one call at a time.
///
/// # Errors
/// If an author text cannot be rendered. What prevents the call is its result.
pub async fn proceed(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
) -> Result<CallStep, ActionError> {
    let _ = (turn, state);
    Ok(CallStep::Ended(ToolResult {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        status: ToolStatus::Refused,
        error: Some(msg!("the script does not permit the tool `{}`", call.tool)),
        ..ToolResult::default()
    }))
}
