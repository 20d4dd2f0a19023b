//! Coverage as one page for a browser: no script, nothing from elsewhere, readable on a phone and on paper.

pub mod escape;
pub mod page;
mod source;
mod tree;
