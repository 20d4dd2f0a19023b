//! What the conversation kinds share: their common configuration, the rounds of a talk, and what a reply gives.

pub mod config;
pub mod outputs;
pub mod reading;
pub mod rounds;
