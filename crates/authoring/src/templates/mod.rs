//! Templates for those who edit them: which there are, which layer serves each, how they differ, new schemes.

pub mod asked;
pub mod check;
pub mod diff;
pub mod find;
pub mod list;
pub mod new;
pub mod place;
pub mod pulls;
pub mod scheme;
pub mod shelf;
