//! The rules, one file each, and [`RULES`], the one list of them.

pub mod confusable_names;
pub mod hidden_variable;
pub mod never_set;
pub mod output_type_conflict;
pub mod required_output;
pub mod rule;
pub mod shadowed_variable;
pub mod template_language;
pub mod unused_variable;
pub mod value_type_conflict;

use crate::check::rules::confusable_names::ConfusableNames;
use crate::check::rules::hidden_variable::HiddenVariable;
use crate::check::rules::never_set::NeverSet;
use crate::check::rules::output_type_conflict::OutputTypeConflict;
use crate::check::rules::required_output::RequiredOutput;
use crate::check::rules::rule::Rule;
use crate::check::rules::shadowed_variable::ShadowedVariable;
use crate::check::rules::template_language::TemplateLanguage;
use crate::check::rules::unused_variable::UnusedVariable;
use crate::check::rules::value_type_conflict::ValueTypeConflict;

/// Every rule. A new one is a file, a line here, a line in [`crate::check::diagnostics`] and a page.
pub static RULES: &[&dyn Rule] = &[
    &ConfusableNames,
    &HiddenVariable,
    &NeverSet,
    &OutputTypeConflict,
    &RequiredOutput,
    &ShadowedVariable,
    &TemplateLanguage,
    &UnusedVariable,
    &ValueTypeConflict,
];
