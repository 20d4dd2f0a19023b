//! Templates for those who edit them: which there are, which layer serves each, how they differ, new schemes.

pub mod create;
pub mod find;
pub mod new;
pub mod scheme;
pub mod shelf;
