//! What the providers share that ask a server over HTTP: how it is reached, one attempt, its limits and its errors.

pub mod config;
pub mod exchange;
pub mod patience;
