//! Renders prompts for inspection: no model is called, and nothing is stored.

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
