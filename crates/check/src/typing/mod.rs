//! Type analysis of expressions, based on declarations.

pub mod analysis;
pub mod contradiction;
mod dates;
pub mod finding;
mod known_types;
pub mod suggestion;
#[cfg(test)]
mod tests;
pub mod type_set;
pub mod values;
