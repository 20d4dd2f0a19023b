//! Notebooks as files: of stored sessions, and of running ones.

pub(crate) mod given_ids;
pub mod masked;
pub mod outline;
pub mod ownership;
pub mod pictures;
pub mod read;
pub mod write;
