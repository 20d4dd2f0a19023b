//! Conversation tests (docs/tests.md), as written.

pub mod cases;
pub mod counted;
pub mod dialogue;
pub mod expect;
pub mod fault;
pub mod pattern;
pub mod replies;
pub mod snapshot;
pub mod test;
pub mod time;
pub mod wanted;
pub mod wording;
