//! Common code of the HTTP providers: requests and their limits, the features that a server supports, and retries.

pub mod address;
pub mod caller;
pub mod chunk;
pub mod config;
pub mod dialect;
pub mod draft;
pub(crate) mod echo;
#[cfg(test)]
pub mod fake;
pub(crate) mod halves;
pub mod headers;
pub mod reading;
pub mod request_features;
pub mod server;
