//! The interface between the behavior loop (docs/protocol.md) and a server.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// A stable slug: `server-unknown`, `server-unreachable`, `server-refused`, `server-timeout`, `server-rubbish`, `server-flood`.
    pub code: &'static str,
    /// The error. Contains nothing that the server sent except its status.
    pub message: Message,
    pub help: Option<Message>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BehaviorPiece {
    /// An action of a stream, in the form in which it was sent.
    Action(Value),
    /// The complete response, or the response around the actions of a stream.
    Response(Value),
}

/// An answer that is being received. Dropping it closes the connection.
#[async_trait]
pub trait ResponseStream: Send {
    /// The next piece; `None` when the answer is complete.
    ///
    /// # Errors
    /// The connection breaks or stalls, or the answer is invalid. Pieces received before stay valid.
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError>;
}

/// A server that sends behaviors, as configured in bcc-script.toml (`[behavior_servers.<name>]`).
#[async_trait]
pub trait BehaviorServer: Send + Sync {
    /// Whether the server answers, as far as that is known without sending it anything of a session.
    ///
    /// # Errors
    /// It cannot be reached, does not answer, or refuses the token.
    async fn check(&self) -> Result<(), ServerError> {
        Ok(())
    }

    /// Sends an observation (docs/protocol.md) and returns the answer as it is received.
    async fn actions(&self, observation: &Value) -> Result<Box<dyn ResponseStream>, ServerError>;

    /// Sends the observation after a behavior and returns the reflection of the server.
    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError>;

    /// Whether it plans before it is asked for actions: the stages of a session, the steps of a stage, or the task of a behavior.
    fn plans(&self) -> bool {
        false
    }

    /// Sends an observation and returns the plan for its state. Only asked if the server plans.
    async fn plan(&self, _observation: &Value) -> Result<Value, ServerError> {
        Ok(Value::Null)
    }

    fn is_legacy_form(&self) -> bool {
        false
    }
}
