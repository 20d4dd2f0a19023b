//! Converts the legacy form of a skill, `technique_id` with `topic` at the root, to `skill:` (docs/migrate.md).

use crate::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::legacy::parts::{current_key, find};
use crate::script::legacy::proof::verify;
use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow, last_line};
use crate::script::legacy::wrap::{Placement, Wrap};
use crate::script::lines::{end, is_alias};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Current names of fields at the root, and of fields in `topic` that a skill also has.
const ROOT: [(&str, &str); 2] = [("technique_id", "skill_id"), ("technique_name", "skill_name")];
const TOPIC: [(&str, &str); 3] = [("declare", "inputs"), ("topic_goal", "skill_goal"), ("topic_name", "skill_name")];

/// Fields of `topic` that a skill does not have. They are preserved with the prefix `x-`.
const PRESERVED: [&str; 2] = ["topic_id", "strategy"];

/// The diagnostic of a legacy skill file, with the fix that converts it.
pub fn older_skill_form(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let entry = root.as_mapping()?.iter().find(|entry| entry.key.value == "technique_id")?;
    let message = "`technique_id` with `topic` is the legacy form of a skill";
    let diagnostic = Diagnostic::warning("older-skill-form", message, file, entry.key.span);
    Some(match rewritten(file, root) {
        Ok(edits) => diagnostic
            .with_help(msg!("run `bcc-script migrate --write {}` to convert it to the current format", file.name()))
            .with_sure_fix("convert it to the current format", edits),
        Err(ambiguous) => ambiguous.add_to(
            diagnostic,
            file,
            "write `skill:`, and below it `skill_id`, `inputs` (including the items of the topic's `declare`), `outputs` and `actions`",
        ),
    })
}

fn rewritten(file: &Arc<SourceFile>, root: &YamlNode) -> Result<Vec<Edit>, AmbiguousRewrite> {
    let entries = root.as_mapping().unwrap_or_default();
    let mut rewrite = Rewrite::of(file);
    let missing_topic = || AmbiguousRewrite::at(root.span, "`topic` with its `actions` is missing");
    let topic = entries.iter().find(|entry| entry.key.value == "topic").ok_or_else(missing_topic)?;
    let inner = topic.value.as_mapping().filter(|_| !is_alias(topic)).ok_or_else(missing_topic)?;
    let has_root_field = |name: &str| find(entries, name, &[]).is_some();
    let mut skill = Map::new();
    let mut expected = Map::new();
    let mut keys = Vec::new();
    for entry in entries.iter().filter(|entry| !std::ptr::eq(*entry, topic)) {
        let key = current_name(entry, &ROOT);
        rename(&mut rewrite, entry, &key);
        keys.push(key);
    }
    let mut topic_fields = Map::new();
    for entry in inner {
        let key = current_key(entry);
        if key == "declare" && has_root_field("inputs") {
            let reason = "`inputs` and `declare` of the topic are now one list: put the items of both below `inputs`";
            return Err(AmbiguousRewrite::at(entry.key.span, reason));
        }
        let key = match key.as_str() {
            // The name and the goal of the skill itself take precedence.
            "topic_name" if has_root_field("technique_name") || has_root_field("skill_name") => format!("x-{key}"),
            "topic_goal" if has_root_field("skill_goal") => format!("x-{key}"),
            other if PRESERVED.contains(&other) => format!("x-{other}"),
            _ => current_name(entry, &TOPIC),
        };
        rename(&mut rewrite, entry, &key);
        topic_fields.insert(key, entry.value.to_json());
    }
    let mut keys = keys.into_iter();
    let mut placements = Vec::new();
    for entry in entries {
        if std::ptr::eq(entry, topic) {
            skill.append(&mut topic_fields);
            placements.push(Placement::Nested);
            continue;
        }
        let key = keys.next().unwrap_or_default();
        let nested = key != "metadata" && !key.starts_with("x-");
        placements.push(if nested { Placement::Nested } else { Placement::Sibling });
        if nested {
            skill.insert(key, entry.value.to_json())
        } else {
            expected.insert(key, entry.value.to_json())
        };
    }
    expected.insert("skill".to_owned(), Value::Object(skill));

    let (indent, already_indented) = remove_topic_key(&mut rewrite, root, topic)?;
    Wrap { key: "skill", indent, already_indented }.around(&mut rewrite, root, &placements)?;
    let edits = rewrite.finish();
    if verify(file, &edits, &Value::Object(expected)) {
        return Ok(edits);
    }
    Err(AmbiguousRewrite::at(topic.key.span, "its layout does not allow lines to be moved safely"))
}

/// The current key of an entry, according to `table`.
fn current_name(entry: &YamlEntry, table: &[(&str, &str)]) -> String {
    let current = current_key(entry);
    let found = table.iter().find(|(legacy, _)| *legacy == current).map(|(_, name)| (*name).to_owned());
    found.unwrap_or_else(|| entry.key.value.clone())
}

fn rename(rewrite: &mut Rewrite<'_>, entry: &YamlEntry, key: &str) {
    if entry.key.value != key {
        rewrite.rename(entry.key.span, key);
    }
}

/// Removes `topic:`, so that its fields become those of the skill. Returns their column, and their lines in block style.
fn remove_topic_key(
    rewrite: &mut Rewrite<'_>,
    root: &YamlNode,
    topic: &YamlEntry,
) -> Result<(usize, Option<std::ops::RangeInclusive<usize>>), AmbiguousRewrite> {
    let file = rewrite.file();
    let ambiguous = |reason: &'static str| AmbiguousRewrite::at(topic.key.span, reason);
    let value = topic.value.span;
    if is_flow(file, root) {
        let inside = file.slice(value).get(1..).unwrap_or_default();
        let spaces = inside.len() - inside.trim_start_matches([' ', '\t']).len();
        rewrite.replace(Span::new(topic.key.span.start, value.start + 1 + spaces), "");
        // A comma after the last field would duplicate the one that follows.
        let last =
            topic.value.as_mapping().and_then(|entries| entries.last()).map_or(value.start + 1, |last| end(file, last));
        let rest = Span::new(last, value.end.saturating_sub(1));
        let only = |allowed: &[char]| file.slice(rest).chars().all(|c| allowed.contains(&c));
        if only(&[' ', '\t', ',']) {
            rewrite.replace(Span::new(last, value.end), "");
        } else if only(&[' ', '\t', '\n', '\r']) {
            rewrite.replace(Span::new(rest.end, value.end), "");
        } else {
            return Err(ambiguous("there is something after its last field"));
        }
        return Ok((2, None));
    }
    if is_flow(file, &topic.value) {
        return Err(ambiguous("its fields are in braces: write each on its own line"));
    }
    let line = file.line(topic.key.span.start);
    let head = file.line_span(line).unwrap_or(topic.key.span);
    let first = topic.value.as_mapping().and_then(|entries| entries.first()).map(|first| first.key.span);
    let column = first.and_then(|first| rewrite.column(first)).filter(|(column, is_first)| *is_first && *column > 0);
    let (indent, _) = column.ok_or_else(|| ambiguous("its fields do not start on their own lines"))?;
    let after_key = Span::new(topic.key.span.end, head.end);
    let rest = file
        .slice(after_key)
        .trim_start()
        .strip_prefix(':')
        .map(str::trim)
        .ok_or_else(|| ambiguous("it has no colon"))?;
    match rest {
        "" => {
            let next = file.line_span(line + 1).map_or(head.end, |next| next.start);
            rewrite.replace(Span::new(head.start, next), "");
        }
        comment if comment.starts_with('#') => {
            let hash = head.end - file.slice(after_key).len() + file.slice(after_key).find('#').unwrap_or(0);
            rewrite.replace(Span::new(topic.key.span.start, hash), " ".repeat(indent));
        }
        _ => return Err(ambiguous("there is something after it on its line")),
    }
    Ok((indent, Some(line..=last_line(file, topic))))
}
