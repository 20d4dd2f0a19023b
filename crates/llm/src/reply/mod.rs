//! Parses the text of a model with three or four strategies, and coerces the value to its schema (docs/replies.md).

pub mod coerce;
pub mod exit;
pub mod extract;
pub mod field;
pub mod live;
pub mod object_start;
pub mod read;
pub mod repair;
pub mod request_schema;
pub mod shape;
pub mod strategies;
pub mod unescape;
