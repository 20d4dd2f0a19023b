//! Coverage as a single HTML page without scripts or external resources, readable on a phone and in print.

pub mod escape;
pub mod page;
mod source;
mod tree;
