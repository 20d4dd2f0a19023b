//! `bcc-script.toml`: its tables, validation, and positions in its text.

pub mod config;
pub mod jupyter_table;
pub mod kinds;
pub mod mcp_table;
pub mod model_table;
pub mod places;
pub mod secrets;
pub mod serve_table;
pub mod server_table;
pub mod tool_tables;
pub mod validation;
pub mod values;
