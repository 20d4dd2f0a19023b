//! A behavior server over HTTP (docs/protocol.md): settings, requests with their limits, and parsing of the answers.

pub mod answer;
pub mod client;
pub mod error;
pub mod pieces;
pub mod settings;
pub mod xml;
