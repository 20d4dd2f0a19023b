//! A model's text becomes a value (docs/replies.md): by three strategies, or four, then bent to its schema, every bend recorded.

pub mod coerce;
pub mod exit;
pub mod extract;
pub mod field;
pub mod live;
pub mod object_start;
pub mod read;
pub mod repair;
pub mod shape;
pub mod strategies;
pub mod unescape;
