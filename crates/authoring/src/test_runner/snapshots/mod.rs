//! Snapshots: what a conversation was the last time, kept in a file and compared with what it is now.

pub mod compare;
pub mod content;
pub mod conversation;
pub mod files;
