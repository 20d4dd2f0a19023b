//! What values an expression may have, as far as the declarations tell, and what that makes wrong with it.

pub mod analysis;
pub mod contradiction;
pub mod finding;
pub mod suggestion;
#[cfg(test)]
mod tests;
pub mod type_set;
