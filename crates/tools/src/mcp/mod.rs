//! The client of servers of tools (Model Context Protocol). [`source`] makes the tools of all servers that a project configures;
//! they are called `mcp.<server>.<tool>`.
//!
//! A server is started on first use. Everything that it sends is data: it is bounded, its descriptions are cleaned, and nothing in them
//! is followed.

#[cfg(feature = "mcp")]
mod call;
#[cfg(feature = "mcp")]
mod client_handler;
#[cfg(feature = "mcp")]
mod connection;
#[cfg(feature = "mcp")]
mod failures;
#[cfg(feature = "mcp")]
mod garbled;
#[cfg(feature = "mcp")]
mod input;
#[cfg(feature = "mcp")]
mod lines;
#[cfg(feature = "mcp")]
mod listing;
mod names;
#[cfg(feature = "mcp")]
mod program;
#[cfg(feature = "mcp")]
mod results;
#[cfg(feature = "mcp")]
mod secrets;
#[cfg(feature = "mcp")]
mod server;
#[cfg(feature = "mcp")]
pub mod servers;
pub mod source;
#[cfg(feature = "mcp")]
mod texts;
#[cfg(feature = "mcp")]
mod thread;
#[cfg(not(feature = "mcp"))]
pub mod without_mcp;
