//! What authors write, and nothing that runs it: text with places, YAML, values, scripts, templates, messages.
//!
//! The modules in reading order: [`source`] reads files and points into them; [`value`] is what variables hold; [`script`] is
//! the tree as it was written; [`template`] and [`expr`] compile prompts, author texts and conditions; [`schema`] holds JSON
//! Schemas; [`message`] has the languages of the terminal.
//!
//! This crate promises that whatever it is given, of any size and any bytes, ends in a value or in diagnostics, never in a
//! panic, and that every bound is a named constant. It knows no model, no store and no session.

extern crate self as bcc_lang;

pub mod expr;
pub mod message;
pub mod schema;
pub mod script;
pub mod source;
pub mod template;
pub mod value;
