//! Author texts, expressions and prompt templates (docs/language.md and docs/templates.md).

pub mod builtin;
pub mod environment;
pub mod fault;
pub mod features;
pub mod front;
pub mod guard;
pub mod layers;
pub mod loaded;
pub mod marks;
pub mod mentions;
pub mod names;
pub mod pattern;
pub mod roles;
pub mod template;
pub mod templates;
pub mod text;
pub mod unknown;
pub mod uses;
