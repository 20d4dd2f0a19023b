//! Detects files whose root key is missing, misspelled or indented below another key.

use crate::message::message::Message;
use crate::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::source::compose::parse;
use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::edits::apply;
use crate::source::near::is_typing_error;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// The root keys, with the description of the document and the fields that identify it.
const ROOTS: [(&str, &str, &[&str]); 2] =
    [("session", "a script", &["session_id", "phases"]), ("skill", "a skill", &["skill_id"])];

/// The diagnostic of a file without a root key, if its content shows which one is missing.
pub(crate) fn missing_root_key(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let entries = root.as_mapping()?;
    absent(file, entries).or_else(|| indented(file, entries)).or_else(|| misspelled(file, entries))
}

/// The fields of the document are at the top level.
fn absent(file: &Arc<SourceFile>, entries: &[YamlEntry]) -> Option<Diagnostic> {
    let (key, what, first) = ROOTS.iter().find_map(|(key, what, fields)| {
        let is_own_field = |entry: &&YamlEntry| fields.contains(&entry.key.value.as_str());
        Some((key, what, entries.iter().find(is_own_field)?))
    })?;
    let message = msg!("{what} needs a line `{key}:` above its fields", what = Message::word(what));
    let help =
        msg!("write `{key}:` on the line above, without indentation, and indent everything below it by two spaces");
    let diagnostic = Diagnostic::error("missing-key", message, file, first.key.span).with_help(help);
    // A short file gets a fix; a longer one is work for an editor.
    let Some(edits) = indent_all(file, entries).map(|edits| with_key(edits, key)) else { return Some(diagnostic) };
    let sure = is_certain(key, entries) && keeps_content(file, entries, key, &edits);
    let fix = Fix::sure(msg!("put `{key}:` above and indent the rest"), edits);
    Some(diagnostic.with_fixes([fix.only_sure_if(sure)]))
}

/// Whether these fields can only be those of a script or a skill: other programs use `phases` too.
fn is_certain(root: &str, fields: &[YamlEntry]) -> bool {
    let value = |key: &str| fields.iter().find(|entry| entry.key.value == key).map(|entry| &entry.value);
    let named = |key: &str| value(key).is_some_and(|id| id.as_scalar().is_some());
    let listed = |key: &str, ids: &[&str]| {
        let items = value(key).and_then(|items| items.as_sequence()).filter(|items| !items.is_empty());
        items.is_some_and(|items| items.iter().all(|item| ids.iter().any(|id| item.get(id).is_some())))
    };
    match root {
        "session" => named("session_id") && listed("phases", &["phase_id", "topics"]),
        _ => {
            named("skill_id")
                && (listed("actions", &["action_id", "action_type"]) || listed("topics", &["topic_id", "actions"]))
        }
    }
}

/// Whether the edited text has the same content below the key.
fn keeps_content(file: &SourceFile, entries: &[YamlEntry], key: &str, edits: &[Edit]) -> bool {
    let Ok(text) = apply(file.text(), edits) else { return false };
    let after = parse(&Arc::new(SourceFile::new(file.name(), text)));
    let fields = |entries: &[YamlEntry]| -> Vec<(String, Value)> {
        entries.iter().map(|entry| (entry.key.value.clone(), entry.value.to_json())).collect()
    };
    let inner = after.root.as_ref().and_then(|root| root.get(key)?.as_mapping());
    after.diagnostics.is_empty() && inner.is_some_and(|inner| fields(inner) == fields(entries))
}

/// An insertion of two spaces for each line of a short file whose root is not indented.
fn indent_all(file: &Arc<SourceFile>, entries: &[YamlEntry]) -> Option<Vec<Edit>> {
    const MAX_LINES: usize = 40;
    let first = entries.first()?.key.span.start;
    let text = file.text();
    let metadata = entries.iter().any(|entry| entry.key.value == "metadata" || entry.key.value.starts_with("x-"));
    let at_line_start = file.line_span(file.line(first)).is_some_and(|line| line.start == first);
    if metadata || !at_line_start || text.lines().count() > MAX_LINES {
        return None;
    }
    let lines = (file.line(first)..).map_while(|number| file.line_span(number));
    // A line of spaces may belong to a text, which is indented as a whole.
    let lines: Vec<Span> = lines.filter(|line| !file.slice(*line).is_empty()).collect();
    // Document markers must stay at the start of their lines, and what follows them would be another document.
    let marked = lines.iter().any(|line| ["---", "..."].iter().any(|mark| file.slice(*line).starts_with(mark)));
    (!marked).then(|| lines.into_iter().map(|line| Edit::insert(line.start, "  ")).collect())
}

fn with_key(mut edits: Vec<Edit>, key: &str) -> Vec<Edit> {
    if let Some(first) = edits.first_mut() {
        first.text = format!("{key}:\n  ");
    }
    edits
}

/// The root key is below another key.
fn indented(file: &Arc<SourceFile>, entries: &[YamlEntry]) -> Option<Diagnostic> {
    let (outer, key, inner) = entries.iter().find_map(|entry| {
        let inner = entry.value.as_mapping()?;
        ROOTS.iter().find_map(|(key, _, fields)| {
            let found = inner.iter().find(|inner| inner.key.value == *key)?;
            let valid = found.value.as_mapping()?.iter().any(|field| fields.contains(&field.key.value.as_str()));
            valid.then_some((entry, key, found))
        })
    })?;
    let message = msg!("`{key}` is indented below `{}`", outer.key.value);
    let help = msg!("remove the indentation of `{key}:`, and move everything below it to the left by the same amount");
    let diagnostic = Diagnostic::error("missing-key", message, file, inner.key.span).with_help(help);
    Some(diagnostic.with_related("it is read as part of this", file, outer.key.span))
}

/// Another word is used as the root key.
fn misspelled(file: &Arc<SourceFile>, entries: &[YamlEntry]) -> Option<Diagnostic> {
    let (entry, key, what) = entries.iter().find_map(|entry| {
        let inner = entry.value.as_mapping()?;
        let has = |fields: &[&str]| inner.iter().any(|field| fields.contains(&field.key.value.as_str()));
        let (key, what, _) = ROOTS.iter().find(|(_, _, fields)| has(fields))?;
        (entry.key.value != "metadata" && !entry.key.value.starts_with("x-")).then_some((entry, key, what))
    })?;
    let message = msg!(
        "{what} starts with `{key}:`, not with `{}:`",
        crate::script::fields::shortened(&entry.key.value),
        what = Message::word(what)
    );
    let edits = vec![Edit::replace(entry.key.span, *key)];
    let diagnostic = Diagnostic::error("unknown-key", message, file, entry.key.span);
    let fix = Fix::sure(msg!("rename to `{key}`"), edits);
    let certain = entry.value.as_mapping().is_some_and(|fields| is_certain(key, fields));
    let sure = certain && entries.len() == 1 && is_typing_error(&entry.key.value, key);
    Some(diagnostic.with_help(msg!("write `{key}:`")).with_fixes([fix.only_sure_if(sure)]))
}
