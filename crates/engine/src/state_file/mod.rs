//! Runs workflow state files (docs/workflows.md): a session carries the file, and its progress is written into the file after each commit.

pub mod agreement;
pub mod disk;
pub mod file_decision;
pub mod keeper;
pub mod open;
