//! `bcc-script.toml`: what it may hold, what is wrong with it, and where it stands.

pub mod config;
pub mod kinds;
pub mod model_table;
pub mod places;
pub mod secrets;
pub mod server_table;
pub mod validation;
pub mod values;
