//! Snapshots: the result of a conversation, stored in a file and compared with later runs.

pub mod compare;
pub mod content;
pub mod conversation;
pub mod files;
pub mod orphaned;
