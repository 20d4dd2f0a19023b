//! What all actions have in common that call a skill: what it is given, what is taken from it, and how it fails.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::program::flow::ActionError;
use crate::program::kind::SkillArgument;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::declare::variable_name;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// What entries of a mapping give, as written.
pub fn given<'e>(entries: impl IntoIterator<Item = &'e YamlEntry>) -> Vec<SkillArgument> {
    let given = |entry: &YamlEntry| SkillArgument { name: entry.key.clone(), value: Arc::clone(&entry.value) };
    entries.into_iter().map(given).collect()
}

/// `output: [name]`, or `output: { ours: theirs }`: our variables with the outputs that fill them.
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

/// Sets our variables to what came, each pair with our name first. Gives what was set, as it may be shown.
pub fn take(
    turn: &Turn<'_>,
    outputs: &[(String, String)],
    came: &Map<String, Value>,
) -> Result<Map<String, Value>, ActionError> {
    let mut taken = Map::new();
    for (ours, theirs) in outputs {
        // As with what a model extracts, null overwrites nothing.
        let Some(value) = came.get(theirs).filter(|value| !value.is_null()) else { continue };
        let shown = turn.set(ours, Value::clone(value), None)?;
        taken.insert(ours.clone(), shown);
    }
    Ok(taken)
}

/// The literals of [`failure_of`].
const FAILED: &str = "the skill `{skill}` ended with an error";
const FAILED_WITH: &str = "the skill `{skill}` ended with an error: {inner}";

/// What went wrong in a skill that came to this end; none when nothing did.
pub fn failure_of(skill: &str, end: &Outcome) -> Option<Message> {
    if end.exit_reason != Some(ExitReason::Error) {
        return None;
    }
    // Of skills inside one another the innermost says what went wrong.
    Some(match end.error_message() {
        None => msg!("the skill `{skill}` ended with an error"),
        Some(inner) if [FAILED, FAILED_WITH].iter().any(|literal| inner.is(literal)) => inner,
        Some(inner) => msg!("the skill `{skill}` ended with an error: {inner}"),
    })
}
