//! The session loop: read the state, run one turn, write the state, repeat (docs/architecture.md).

pub mod budget;
pub mod commit;
pub mod draft;
pub mod effects;
pub mod elements;
pub mod error;
mod finish;
pub mod frames;
pub mod head;
pub mod insertions;
pub mod location;
pub mod mailbox;
pub mod monitors;
pub mod notebook;
pub mod orchestrate;
pub mod planner;
pub mod position;
pub mod resume;
pub mod routing;
pub mod session;
pub mod start;
pub mod step_control;
pub mod take_back;
pub mod time;
pub mod transitions;
pub mod triggers;
pub mod turns;
