//! The loop: read the state, run one turn, write the state, repeat (docs/architecture.md).

pub mod budget;
pub mod commit;
pub mod draft;
pub mod effects;
pub mod elements;
pub mod error;
pub mod frames;
pub mod head;
pub mod insertions;
pub mod load;
pub mod mailbox;
pub mod moves;
pub mod notebook;
pub mod orchestrate;
pub mod planner;
pub mod position;
pub mod rehearse;
pub mod routes;
pub mod session;
pub mod start;
pub mod time;
pub mod triggers;
pub mod turns;
pub mod watch;
pub mod whereabouts;
