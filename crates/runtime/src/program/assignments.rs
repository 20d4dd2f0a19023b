//! Reads and evaluates `values: { name: value }` of `set` and of the cases of `condition`.

use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::program::assigned::{Assigned, Assignment};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::script::declare::variable_name;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_lang::value::exact::{ExactValue, ExactValues};

/// Reads a mapping of names to values. Expressions see the variables as they were before the first assignment.
pub fn read_values(
    node: &Arc<YamlNode>,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<Vec<Assignment>> {
    let NodeKind::Mapping(entries) = &node.kind else {
        let message =
            msg!("the variables to set must be a mapping of names to values, but this is {}", node.describe());
        let help = "write each variable on its own line, as `name: value`";
        fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help));
        return None;
    };
    if entries.is_empty() {
        let message = "nothing is set here";
        let help = "add at least one variable with its value, or remove the item that contains this";
        fields.findings().report(Diagnostic::error("empty-list", message, fields.file(), node.span).with_help(help));
        return None;
    }
    let mut assignments = Vec::new();
    let mut names = Vec::new();
    for entry in entries {
        let name = Spanned { value: entry.key.value.clone(), span: entry.key.span };
        let Some(variable) = variable_name(&name, fields) else { continue };
        if let Some(value) = read_value(&entry.value, checker) {
            let constant = match &value {
                Assigned::Literal(value) => Some(Value::clone(value)),
                Assigned::Text(text) if text.is_plain() => Some(Value::from(text.source())),
                Assigned::Text(_) | Assigned::Expression(_) => None,
            };
            checker.sets(&name, constant, entry.value.span);
            assignments.push(Assignment { name: variable, value });
        }
        names.push(name);
    }
    for name in &names {
        checker.may_have_value(name, None);
    }
    (assignments.len() == entries.len()).then_some(assignments)
}

/// Reads one value: an expression, a text or a literal.
pub(crate) fn read_value(node: &Arc<YamlNode>, checker: &mut dyn KindChecker) -> Option<Assigned> {
    match node.as_scalar() {
        Some(scalar) if node.to_json().is_string() => {
            let field = TextField { text: scalar.text.clone(), node: Arc::clone(node) };
            match expression_in(&field.text) {
                Some(range) => checker.expression_within(&field, range).map(Assigned::Expression),
                None => checker.text(&field).map(Assigned::Text),
            }
        }
        _ => Some(Assigned::Literal(node.to_exact())),
    }
}

/// The byte range between the braces, if the text is exactly one `{{ … }}`.
fn expression_in(text: &str) -> Option<std::ops::Range<usize>> {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("{{")?.strip_suffix("}}")?;
    // `{{-` and `-}}` trim white space, which only a text can contain.
    let is_trim = |c: char| matches!(c, '-' | '+');
    if inner.starts_with(is_trim)
        || inner.ends_with(is_trim)
        || ["{{", "}}", "{%"].iter().any(|tag| inner.contains(tag))
    {
        return None;
    }
    let start = text.find("{{")? + 2;
    Some(start..start + inner.len())
}

/// Evaluates the values and returns them with their names.
pub fn evaluate<'v>(
    turn: &Turn<'_>,
    values: impl Iterator<Item = (&'v str, &'v Assigned)>,
) -> Result<Vec<(String, ExactValue)>, ActionError> {
    let names = turn.names(1);
    let value = |value: &Assigned| match value {
        Assigned::Expression(expression) => turn.value(expression),
        Assigned::Text(text) => Ok(Value::from(turn.text(text, &names)?).into()),
        Assigned::Literal(value) => Ok(value.clone()),
    };
    values.map(|(name, written)| Ok((name.to_owned(), value(written)?))).collect()
}

/// Sets all variables after all values were evaluated. Returns the assigned values, with sensitive values masked.
/// Errors: An expression fails, or a value does not fit the declaration of its variable.
pub fn assign<'a>(
    turn: &Turn<'_>,
    assignments: impl IntoIterator<Item = &'a Assignment>,
) -> Result<ExactValues, ActionError> {
    let pairs = assignments.into_iter().map(|assignment| (assignment.name.as_str(), &assignment.value));
    let values = evaluate(turn, pairs)?;
    let mut shown = ExactValues::new();
    for (name, value) in values {
        let value = turn.set(&name, value, None)?;
        shown.insert(name, value);
    }
    Ok(shown)
}

/// Sets the variables whose values can be set, after all values were evaluated. Returns why the others keep what they have.
pub(crate) fn assign_each<'a>(
    turn: &Turn<'_>,
    assignments: impl IntoIterator<Item = &'a Assignment>,
) -> Vec<ActionError> {
    let alone = |assignment: &'a Assignment| (assignment.name.as_str(), &assignment.value);
    let values: Vec<_> =
        assignments.into_iter().map(|assignment| evaluate(turn, std::iter::once(alone(assignment)))).collect();
    let mut failed = Vec::new();
    for value in values {
        let set = value.and_then(|values| {
            values.into_iter().try_for_each(|(name, value)| turn.set(&name, value, None).map(|_| ()))
        });
        failed.extend(set.err());
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_one_complete_placeholder_is_an_expression() {
        let table = [
            ("{{ age + 1 }}", Some(" age + 1 ")),
            ("  {{age}}  ", Some("age")),
            ("age {{ age }}", None),
            ("{{ a }}{{ b }}", None),
            ("{% if a %}{% endif %}", None),
            ("{{- age -}}", None),
            ("{}", None),
            ("{{}", None),
        ];
        for (text, inner) in table {
            assert_eq!(expression_in(text).map(|range| &text[range]), inner, "{text}");
        }
    }
}
