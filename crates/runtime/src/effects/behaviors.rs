//! What the loop of behaviors (docs/protocol.md) asks of a server, whatever the server is.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// A stable slug: `server-unknown`, `server-unreachable`, `server-refused`, `server-timeout`, `server-rubbish`, `server-flood`.
    pub code: &'static str,
    /// What is wrong. Holds nothing of what the server sent beyond its status.
    pub message: Message,
    pub help: Option<Message>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BehaviorPiece {
    /// An action, of a stream as it arrives; as it was sent, in whatever form.
    Action(Value),
    /// The whole response, or what stood around the actions of a stream.
    Response(Value),
}

/// An answer that is arriving. Dropping it closes the connection.
#[async_trait]
pub trait ResponseStream: Send {
    /// The next piece; none when the answer is complete.
    ///
    /// # Errors
    /// When the connection breaks, stalls, or brings what is no answer. What came before stays valid.
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError>;
}

/// A server that sends behaviors, as bcc-script.toml configures it (`[behavior_servers.<name>]`).
#[async_trait]
pub trait BehaviorServer: Send + Sync {
    /// Sends an observation (docs/protocol.md) and gives the answer as it arrives.
    async fn actions(&self, observation: &Value) -> Result<Box<dyn ResponseStream>, ServerError>;

    /// Sends what came of a behavior, and gives the server's judgement.
    async fn reflection(&self, observation: &Value) -> Result<Value, ServerError>;

    fn older_form(&self) -> bool {
        false
    }
}
