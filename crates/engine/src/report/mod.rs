//! Reports about sessions (docs/reports.md): what a session did, as one structure and in three formats.

pub mod blocks;
pub mod collect;
pub mod contents;
mod diagram;
pub mod format;
mod html;
mod layout;
mod markdown;
mod progress;
mod text;
pub mod write;
