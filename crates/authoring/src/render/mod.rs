//! The prompts that templates make, to be looked at: no model is asked, and nothing is kept.

pub mod action;
pub mod alone;
pub mod beside;
pub mod changed;
pub mod faults;
pub mod found;
pub mod kept;
pub mod lacking;
pub mod listening;
pub mod prompt;
pub mod repeat;
pub mod request;
pub mod scene;
pub mod sent;
