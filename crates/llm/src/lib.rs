//! Sends requests to language models and turns their replies into values.
//!
//! [`model`] contains requests, replies and the `Provider` trait. [`providers`] contains its implementations, with retries,
//! limits and fallbacks. [`prompt_time`] makes prompts of different times comparable. [`http`] is the client that they share with behavior servers. [`reply`] turns text into validated
//! values and records every coercion.
//!
//! This crate guarantees that no reply makes it panic and that no error contains text of a reply. It does not depend on
//! scripts or stores.

pub mod http;
pub mod model;
pub mod prompt_time;
pub mod providers;
pub mod reply;
