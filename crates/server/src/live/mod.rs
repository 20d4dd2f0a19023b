//! The sessions that run in this process: each in a task of its own that owns it, with commands in and events out.

pub(crate) mod actor;
pub(crate) mod command;
pub mod feed;
mod forks;
pub(crate) mod hand_over;
mod idle;
mod interrupted_turn;
pub mod sessions;
mod turn_commands;
mod turn_signals;
mod waiter;

#[cfg(test)]
mod sessions_tests;
