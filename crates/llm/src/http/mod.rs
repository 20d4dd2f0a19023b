//! The streaming HTTP client for models and behavior servers: connections, timeouts, size limits, retries, and stream parsing.

pub mod address;
pub mod body;
pub mod client;
pub(crate) mod host_lookup;
pub mod lines;
pub mod retry;
pub mod secrets;
pub mod sse;
pub mod timeouts;
pub mod value_stream;
