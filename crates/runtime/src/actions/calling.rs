//! Shared code of the actions that call a skill: its arguments, its outputs and its errors.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use crate::program::flow::ActionError;
use crate::program::kind::SkillArgument;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::declare::variable_name;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};
use bcc_lang::value::exact::ExactValues;

/// The entries of a mapping as skill arguments, as written.
pub(crate) fn skill_arguments<'e>(entries: impl IntoIterator<Item = &'e YamlEntry>) -> Vec<SkillArgument> {
    let argument = |entry: &YamlEntry| SkillArgument { name: entry.key.clone(), value: Arc::clone(&entry.value) };
    entries.into_iter().map(argument).collect()
}

/// Reads `output: [name]` or `output: { ours: theirs }`: pairs of our variable and the output that fills it.
pub fn outputs(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Vec<(Spanned<String>, Spanned<String>)> {
    let text = |node: &Arc<YamlNode>| {
        let name = node.as_scalar().map(|scalar| Spanned { value: scalar.text.clone(), span: node.span });
        if name.is_none() {
            let message = msg!("an output must be the name of a variable, but this is {}", node.describe());
            let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
            fields.findings().report(diagnostic.with_help("write `output: [mood]`, or `output: { our_name: mood }`"));
        }
        name
    };
    let ours = |name: &Spanned<String>| variable_name(name, fields).is_some();
    match &node.kind {
        NodeKind::Mapping(entries) => entries
            .iter()
            .filter(|entry| ours(&entry.key))
            .filter_map(|entry| Some((entry.key.clone(), text(&entry.value)?)))
            .collect(),
        NodeKind::Sequence(items) => {
            items.iter().filter_map(text).filter(ours).map(|name| (name.clone(), name)).collect()
        }
        NodeKind::Scalar(_) => text(node).filter(ours).map(|name| (name.clone(), name)).into_iter().collect(),
    }
}

/// Sets our variables to the outputs; each pair has our name first. Returns the values that were set, in the form that may be
/// shown.
pub(crate) fn set_outputs(
    turn: &Turn<'_>,
    outputs: &[(String, String)],
    values: &ExactValues,
) -> Result<ExactValues, ActionError> {
    let mut set = ExactValues::new();
    for (ours, theirs) in outputs {
        // As with the outputs of a model, null overwrites nothing.
        let Some(value) = values.get(theirs).filter(|value| !value.is_null()) else { continue };
        let shown = turn.set(ours, value.clone(), None)?;
        set.insert(ours.clone(), shown);
    }
    Ok(set)
}

/// The message literals of [`failure_of`].
const FAILED: &str = "the skill `{skill}` ended with an error";
const FAILED_WITH: &str = "the skill `{skill}` ended with an error: {inner}";

/// The error of a skill with this outcome; `None` when it did not fail.
pub(crate) fn failure_of(skill: &str, outcome: &Outcome) -> Option<Message> {
    if outcome.exit_reason != Some(ExitReason::Error) {
        return None;
    }
    // For nested skills, the error of the innermost skill is reported.
    Some(match outcome.error_message() {
        None => msg!("the skill `{skill}` ended with an error"),
        Some(inner) if [FAILED, FAILED_WITH].iter().any(|literal| inner.is(literal)) => inner,
        Some(inner) => msg!("the skill `{skill}` ended with an error: {inner}"),
    })
}
