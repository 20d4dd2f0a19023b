//! Author texts, expressions and prompt templates (docs/language.md and docs/templates.md).

pub mod builtin;
pub mod environment;
pub mod error;
pub(crate) mod exact_number;
pub mod features;
pub(crate) mod filters;
pub mod front_matter;
pub mod language;
pub mod layers;
pub mod limits;
pub mod loaded;
pub(crate) mod memory;
pub mod mentions;
pub mod missing;
pub mod names;
pub(crate) mod native_calls;
pub(crate) mod operations;
pub mod pattern;
pub mod pattern_marks;
pub(crate) mod rewrite;
pub mod roles;
pub mod template;
pub mod templates;
pub mod text;
mod text_mistakes;
pub mod unknown;
pub mod uses;
