//! What a language model is asked, and how its text becomes a value.
//!
//! [`model`] has requests, replies and the `Provider` trait; [`providers`] are its implementations, with retries, limits and
//! fallbacks; [`http`] is the client that they and behavior servers share; [`reply`] turns text into validated values and records everything that it coerced.
//!
//! This crate promises that no reply makes it panic and that no text of a reply stands in an error. It knows no script and no
//! store.

pub mod http;
pub mod model;
pub mod providers;
pub mod reply;
