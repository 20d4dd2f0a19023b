//! What values an expression may have, as far as the declarations tell, and what that makes wrong with it.

pub mod analysis;
pub mod clash;
pub mod found;
pub mod remedy;
pub mod sort;
#[cfg(test)]
mod tests;
