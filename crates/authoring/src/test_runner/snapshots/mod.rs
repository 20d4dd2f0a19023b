//! Snapshots: what a conversation was the last time, kept in a file and compared with what it is now.

pub mod content;
pub mod held;
pub mod keep;
pub mod place;
