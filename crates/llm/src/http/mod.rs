//! One HTTP client with streams, for models and for behavior servers: how a server is reached, how long it is waited for, how much is
//! read of what it sends, and how streams are taken apart.

pub mod address;
pub mod body;
pub mod client;
pub mod lines;
pub mod retry;
pub mod sse;
pub mod timeouts;
pub mod value_stream;
