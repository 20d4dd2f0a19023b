//! The rules, one file each, and [`RULES`], the one list of them.

pub mod rule;
pub mod template_language;

use crate::check::rules::rule::Rule;
use crate::check::rules::template_language::TemplateLanguage;

/// Every rule. A new one is a file, a line here, a line in [`crate::check::diagnostics`] and a page.
pub static RULES: &[&dyn Rule] = &[&TemplateLanguage];
