//! The locks of sessions: [`lock`] is what a session has, [`owner`] what the process has for all of them, [`inbox`] is where other processes
//! ask for them, and [`holder`] tells whether a process that has locks is ending.

pub(crate) mod holder;
pub(crate) mod inbox;
pub(crate) mod lock;
pub(crate) mod owner;

#[cfg(test)]
mod process_tests;
