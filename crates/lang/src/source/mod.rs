//! The source of a script: file text with positions, the YAML tree read from it, and diagnostics that point into it.

pub mod broken_lines;
pub mod broken_marks;
pub mod comments;
pub mod compose;
pub mod core_schema;
pub mod diagnostic;
pub mod edits;
pub mod full_width;
pub mod json_file;
pub mod keys;
pub mod known_fields;
pub mod lines;
pub mod locate;
pub mod misreading;
pub mod near;
pub mod render;
pub mod secrets;
pub mod shared;
pub mod span;
pub mod syntax;
pub mod tags;
pub mod text;
pub mod yaml;
