//! The monitors of the conversation kinds (docs/monitors.md).

pub mod analysis;
pub mod conversation;
