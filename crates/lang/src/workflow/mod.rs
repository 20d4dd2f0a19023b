//! Workflow state files (docs/workflows.md): reading, checking and translating them into a script, and writing progress back into their text.

pub mod circles;
pub mod compare;
pub mod edit;
pub mod fields;
pub mod order;
pub mod progress;
pub mod read;
pub mod route_tree;
pub mod start;
pub mod state_file;
pub mod state_text;
pub mod status;
pub mod targets;
pub mod translate;
pub mod tree;
