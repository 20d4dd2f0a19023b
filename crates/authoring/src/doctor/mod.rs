//! The checks of `doctor`: what works in a project and its environment, and how to fix what does not. Nothing is written.

pub mod configuration;
pub mod doctor;
pub mod editors;
pub mod finding;
pub mod kernels;
pub mod machine;
pub mod prompts;
pub mod stores;
