//! Notebooks (docs/notebook.md): cells, the actions that change them, the plan of the session, the kernel that runs code, the
//! protocol of behavior servers (docs/protocol.md), and the export formats.

pub mod action;
pub mod apply;
pub mod cell;
pub mod effects;
pub mod error;
pub mod export;
pub mod given;
pub(crate) mod json_size;
pub mod kernel;
pub mod kernel_variables;
pub mod large_outputs;
pub mod navigation;
pub mod protocol;
pub mod state;
pub mod workflow;
