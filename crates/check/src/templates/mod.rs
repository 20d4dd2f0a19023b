//! Checks of a project's prompt templates. Each mistake is reported in the file of the template.

pub mod deduplication;
pub mod examine;
pub mod fields;
pub mod fixed_texts;
pub mod full_width_braces;
pub mod language;
pub mod layout;
pub mod legacy_engine;
pub mod markers;
pub mod mistakes;
pub mod names;
pub mod openers;
pub mod quotes;
pub mod schemas;
pub(crate) mod syntax_errors;
pub mod template_set;
pub mod unused;
