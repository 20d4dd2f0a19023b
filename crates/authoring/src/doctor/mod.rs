//! What works in a project and around it, what does not, and what to do about it. Nothing is made or written.

pub mod configuration;
pub mod doctor;
pub mod editors;
pub mod finding;
pub mod kernels;
pub mod machine;
pub mod prompts;
pub mod stores;
