//! A behavior server over HTTP (docs/protocol.md): how it is reached, one request and its limits, and what is made of the bytes
//! that come back.

pub mod arriving;
pub mod client;
pub mod fault;
pub mod pieces;
pub mod settings;
