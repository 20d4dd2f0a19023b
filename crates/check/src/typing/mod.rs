//! Type analysis of expressions, based on declarations.

pub mod analysis;
pub mod contradiction;
pub mod finding;
pub mod suggestion;
#[cfg(test)]
mod tests;
pub mod type_set;
