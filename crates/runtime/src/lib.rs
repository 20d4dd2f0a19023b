//! The checked program of a session, and the loop that runs it.
//!
//! [`program`] is what may run and what an action sees of its turn; [`actions`] has one file for each kind, and the list of
//! them; [`run`] is the loop: frames, turns, commits. [`notebook`] has cells, the kernel and the payloads of behaviors, and
//! [`effects`] what actions may do to the world outside.
//!
//! This crate promises two commits a turn (the answer before anything is asked, the result before anybody is told), that
//! only [`run`] moves between frames, and that outside `effects` and `notebook::kernel` nothing here reads a file, the clock,
//! the environment or the network.

pub mod actions;
pub mod effects;
pub mod notebook;
pub mod program;
pub mod run;
