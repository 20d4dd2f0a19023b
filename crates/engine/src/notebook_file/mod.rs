//! Notebooks as files: of stored sessions, and of running ones.

pub mod masked;
pub mod outline;
pub mod ownership;
pub mod pictures;
pub mod read;
pub mod write;
