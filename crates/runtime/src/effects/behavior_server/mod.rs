//! A behavior server over HTTP (docs/protocol.md): how it is reached, one request and its limits, and what is made of the bytes
//! that come back.

pub mod answer;
pub mod client;
pub mod error;
pub mod pieces;
pub mod settings;
