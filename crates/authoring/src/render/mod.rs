//! The prompts that templates make, to be looked at: no model is asked, and nothing is kept.

pub mod action;
pub mod background;
pub mod capturing;
pub mod comparison;
pub mod errors;
pub mod find_action;
pub mod missing_names;
pub mod prompt;
pub mod replay_session;
pub mod request;
pub mod sent_calls;
pub mod stored_session;
pub mod template_only;
pub mod variables;
