//! Templates for those who edit them: which there are, which layer serves each, how they differ, new schemes.

pub mod catalog;
pub mod check;
pub mod diff;
pub mod find;
pub mod includes;
pub mod list;
pub mod new;
pub mod project;
pub mod requests;
pub mod scheme;
