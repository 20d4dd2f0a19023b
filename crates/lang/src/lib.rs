//! The language that authors write, without its execution: source text with positions, YAML, values, scripts, templates, messages.
//!
//! The modules in reading order: [`source`] reads files and locates positions in them; [`value`] defines the values of variables;
//! [`script`] is the syntax tree of a script; [`template`] and [`expr`] compile prompts, author texts and conditions; [`schema`] holds
//! JSON Schemas; [`workflow`] reads and writes workflow state files; [`message`] has the languages of the terminal.
//!
//! For any input, of any size and any bytes, this crate returns a value or diagnostics and never panics. Every limit is a named
//! constant. The crate does not depend on models, stores or sessions.

extern crate self as bcc_lang;

pub mod expr;
pub mod message;
pub mod schema;
pub mod script;
pub mod source;
pub mod template;
pub mod value;
pub mod workflow;
