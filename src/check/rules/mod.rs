//! The rules, one file each, and [`RULES`], the one list of them.

pub mod rule;

use crate::check::rules::rule::Rule;

/// Every rule. A new one is a file, a line here, a line in [`crate::check::diagnostics`] and a page.
pub static RULES: &[&dyn Rule] = &[];
