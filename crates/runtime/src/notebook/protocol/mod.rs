//! The protocol between a session and a source of behaviors (docs/protocol.md): observations, responses, and all legacy names
//! of both.

pub mod brief;
pub mod context;
pub mod feedback;
pub mod model_observation;
pub mod names;
pub(crate) mod notes;
pub mod observation;
pub mod outline;
pub mod progress;
pub mod read;
pub mod read_observation;
pub mod response;
pub(crate) mod signals;
pub mod state_document;
pub(crate) mod traceback;
