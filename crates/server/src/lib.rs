//! The HTTP server: many conversations at once, over one store.
//!
//! [`serve`] accepts connections and ends in order. [`live`] keeps the sessions that run, each in a task of its own, and gives their events
//! to any number of readers. [`api`] is the API under `/v1`, [`chat`] the chat completions of OpenAI over the same sessions,
//! [`behavior`] the protocol of notebook clients, [`talk`] the page for the people in the
//! conversations, and `studio` that for authors, both of `pages`; [`access`] decides who may call what, before anything else sees a request.
//!
//! A session that rests is rows in the store and nothing in memory. Everything that a response or a stream contains was committed before,
//! so a client that reconnects, to this process or another one on the same store, reads the same.

pub mod access;
pub mod api;
pub mod behavior;
pub mod chat;
pub(crate) mod client_limit;
pub mod live;
pub mod metrics;
pub(crate) mod pages;
pub mod problem;
pub(crate) mod project_paths;
pub mod serve;
#[cfg(test)]
mod serve_tests;
pub mod settings;
pub mod state;
pub(crate) mod studio;
pub mod talk;
