//! The tools that scripts and models may call: [`project_tools`] makes those that a project configures.
//!
//! This crate knows neither scripts nor sessions. What a tool returns is data: it is bounded in size and time, and nothing in it is
//! executed.

pub mod mcp;
pub mod project_tools;
