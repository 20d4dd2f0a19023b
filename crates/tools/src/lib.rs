//! The tools that scripts and models may call: [`project_tools`] makes those that a project configures.
//!
//! [`web_search`] asks a search service, [`graph`] searches triples in files of the project. Every call goes through
//! [`project_tools`], where [`arguments`] checks its arguments, and [`truncation`] and [`result_cache`] bound its result.
//!
//! This crate knows neither scripts nor sessions. What a tool returns is data: it is bounded in size and time, and nothing in it is
//! executed.

pub mod arguments;
pub mod graph;
pub mod mcp;
pub mod project_tools;
pub mod result_cache;
pub mod truncation;
mod unconfigured;
pub mod web_search;
