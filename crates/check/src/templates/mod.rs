//! The examination of a project's prompt templates: every mistake is told in the template's own file.

pub mod deduplication;
pub mod examine;
pub mod fields;
pub mod language;
pub mod layout;
pub mod markers;
pub mod mistakes;
pub mod names;
pub mod openers;
pub mod quotes;
pub mod schemas;
pub mod template_set;
pub mod unused;
