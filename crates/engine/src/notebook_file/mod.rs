//! Notebooks as files: a kept session's, and one that is written anew while its session goes on.

pub mod masked;
pub mod outline;
pub mod ownership;
pub mod write;
