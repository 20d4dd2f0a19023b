//! Conversation tests (docs/tests.md), as written.

pub mod cases;
pub mod dialogue;
pub mod effects;
pub mod expect;
pub mod expected_counts;
pub mod pattern;
pub mod replies;
pub mod scripted_error;
pub mod snapshot;
pub mod test;
pub mod text_expectation;
pub mod time;
pub mod tools;
pub mod value_expectation;
