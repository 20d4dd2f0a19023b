//! The checked program of a session, and the loop that runs it.
//!
//! [`program`] has the checked program and what an action can access during a turn. [`actions`] has one file for each kind and
//! the list of kinds. [`run`] is the loop: frames, turns, commits. [`notebook`] has cells, the kernel and the payloads of
//! behaviors. [`plan`] has plans and their tasks. [`effects`] has the external effects that actions may have.
//!
//! This crate guarantees that each turn has two commits (the answer before the model is called, the result before observers are
//! notified), that only [`run`] moves between frames, and that nothing outside `effects` and `notebook::kernel` reads a file,
//! the clock, the environment or the network.

pub mod actions;
pub mod effects;
pub mod notebook;
pub mod plan;
pub mod program;
pub mod run;
