//! Parses the text of a model with three or four strategies, and coerces the value to its schema (docs/replies.md).

pub mod bare_list;
pub mod coerce;
#[cfg(test)]
mod damage;
pub mod exit;
pub mod extract;
pub mod field;
pub mod live;
pub mod live_list;
mod meaning;
pub mod object_start;
mod out_of_range;
pub mod read;
mod reasoning;
pub mod repair;
pub mod request_schema;
pub mod shape;
pub mod strategies;
mod surroundings;
pub mod unescape;
