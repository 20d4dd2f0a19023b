//! What the providers share that ask a server over HTTP: how it is reached, one attempt and its limits, what is asked of
//! it and no longer when it refuses, and the repetitions.

pub mod address;
pub mod caller;
pub mod chunk;
pub mod config;
pub mod dialect;
pub mod draft;
#[cfg(test)]
pub mod fake;
pub mod headers;
pub mod reading;
pub mod request_features;
pub mod server;
