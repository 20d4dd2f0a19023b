//! A state of the protocol as a document (docs/protocol.md, "State files"): a session begins from it, and is written as one.

pub(crate) mod cells;
pub(crate) mod fields;
pub(crate) mod plan;
pub mod read;
pub mod write;
