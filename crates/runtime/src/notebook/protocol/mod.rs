//! The protocol between a session and whoever sends it behaviors (docs/protocol.md): what is observed, what comes back, and every
//! older name of both.

pub mod brief;
pub mod context;
pub mod feedback;
pub mod names;
pub mod observation;
pub mod progress;
pub mod read;
pub mod read_observation;
pub mod response;
