//! The protocol between a session and whoever sends it behaviors (001, section 4): what is observed, what comes back, and every
//! older name of both.

pub mod context;
pub mod feedback;
pub mod observation;
pub mod response;
