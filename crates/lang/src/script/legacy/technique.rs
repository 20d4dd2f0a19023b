//! The older form of a skill, `technique_id` with `topic` at the root, as today's: `skill:` (docs/migrate.md).

use crate::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::legacy::parts::{find, today};
use crate::script::legacy::proof::proven;
use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow, last_line};
use crate::script::legacy::wrap::{Belongs, Wrap};
use crate::script::lines::{end, is_alias};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Today's names of fields at the root, and of fields in `topic` that a skill has too.
const ROOT: [(&str, &str); 2] = [("technique_id", "skill_id"), ("technique_name", "skill_name")];
const TOPIC: [(&str, &str); 3] = [("declare", "inputs"), ("topic_goal", "skill_goal"), ("topic_name", "skill_name")];

/// Fields of `topic` that a skill does not have: they are kept as the author's own.
const KEPT: [&str; 2] = ["topic_id", "strategy"];

/// What is to be said of such a file, with the fix that writes it in today's form.
pub fn older_skill_form(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let entry = root.as_mapping()?.iter().find(|entry| entry.key.value == "technique_id")?;
    let message = "`technique_id` with `topic` is the legacy form of a skill";
    let diagnostic = Diagnostic::warning("older-skill-form", message, file, entry.key.span);
    Some(match rewritten(file, root) {
        Ok(edits) => diagnostic
            .with_help(msg!("run `bcc-script migrate --write {}` to convert it to the current format", file.name()))
            .with_sure_fix("convert it to the current format", edits),
        Err(unsure) => unsure.told_in(
            diagnostic,
            file,
            "write `skill:`, and below it `skill_id`, `inputs` (including the items of the topic's `declare`), `outputs` and `actions`",
        ),
    })
}

fn rewritten(file: &Arc<SourceFile>, root: &YamlNode) -> Result<Vec<Edit>, AmbiguousRewrite> {
    let entries = root.as_mapping().unwrap_or_default();
    let mut rewrite = Rewrite::of(file);
    let lacks = || AmbiguousRewrite::at(root.span, "`topic` with its `actions` is missing");
    let topic = entries.iter().find(|entry| entry.key.value == "topic").ok_or_else(lacks)?;
    let inner = topic.value.as_mapping().filter(|_| !is_alias(topic)).ok_or_else(lacks)?;
    let outer = |name: &str| find(entries, name, &[]).is_some();
    let mut skill = Map::new();
    let mut made = Map::new();
    let mut keys = Vec::new();
    for entry in entries.iter().filter(|entry| !std::ptr::eq(*entry, topic)) {
        let key = named(entry, &ROOT);
        rename(&mut rewrite, entry, &key);
        keys.push(key);
    }
    let mut inside = Map::new();
    for entry in inner {
        let key = today(entry);
        if key == "declare" && outer("inputs") {
            let why = "`inputs` and `declare` of the topic are now one list: put the items of both below `inputs`";
            return Err(AmbiguousRewrite::at(entry.key.span, why));
        }
        let key = match key.as_str() {
            // The name and the goal of the skill itself are those that hold.
            "topic_name" if outer("technique_name") || outer("skill_name") => format!("x-{key}"),
            "topic_goal" if outer("skill_goal") => format!("x-{key}"),
            other if KEPT.contains(&other) => format!("x-{other}"),
            _ => named(entry, &TOPIC),
        };
        rename(&mut rewrite, entry, &key);
        inside.insert(key, entry.value.to_json());
    }
    let mut keys = keys.into_iter();
    let mut belongs = Vec::new();
    for entry in entries {
        if std::ptr::eq(entry, topic) {
            skill.append(&mut inside);
            belongs.push(Belongs::Below);
            continue;
        }
        let key = keys.next().unwrap_or_default();
        let below = key != "metadata" && !key.starts_with("x-");
        belongs.push(if below { Belongs::Below } else { Belongs::Beside });
        if below {
            skill.insert(key, entry.value.to_json())
        } else {
            made.insert(key, entry.value.to_json())
        };
    }
    made.insert("skill".to_owned(), Value::Object(skill));

    let (by, kept) = unwrap(&mut rewrite, root, topic)?;
    Wrap { key: "skill", by, kept }.around(&mut rewrite, root, &belongs)?;
    let edits = rewrite.finish();
    if proven(file, &edits, &Value::Object(made)) {
        return Ok(edits);
    }
    Err(AmbiguousRewrite::at(topic.key.span, "its layout does not allow lines to be moved safely"))
}

/// Today's key of an entry.
fn named(entry: &YamlEntry, table: &[(&str, &str)]) -> String {
    let today = today(entry);
    let found = table.iter().find(|(older, _)| *older == today).map(|(_, today)| (*today).to_owned());
    found.unwrap_or_else(|| entry.key.value.clone())
}

fn rename(rewrite: &mut Rewrite<'_>, entry: &YamlEntry, key: &str) {
    if entry.key.value != key {
        rewrite.rename(entry.key.span, key);
    }
}

/// Takes `topic:` away, so that its fields are those of the skill. Gives the column in which they stand, and their lines.
fn unwrap(
    rewrite: &mut Rewrite<'_>,
    root: &YamlNode,
    topic: &YamlEntry,
) -> Result<(usize, Option<std::ops::RangeInclusive<usize>>), AmbiguousRewrite> {
    let file = rewrite.file();
    let unsure = |why: &'static str| AmbiguousRewrite::at(topic.key.span, why);
    let value = topic.value.span;
    if is_flow(file, root) {
        let inside = file.slice(value).get(1..).unwrap_or_default();
        let spaces = inside.len() - inside.trim_start_matches([' ', '\t']).len();
        rewrite.replace(Span::new(topic.key.span.start, value.start + 1 + spaces), "");
        // A comma behind the last field is one too many in front of what follows.
        let last =
            topic.value.as_mapping().and_then(|entries| entries.last()).map_or(value.start + 1, |last| end(file, last));
        let rest = Span::new(last, value.end.saturating_sub(1));
        let only = |allowed: &[char]| file.slice(rest).chars().all(|c| allowed.contains(&c));
        if only(&[' ', '\t', ',']) {
            rewrite.replace(Span::new(last, value.end), "");
        } else if only(&[' ', '\t', '\n', '\r']) {
            rewrite.replace(Span::new(rest.end, value.end), "");
        } else {
            return Err(unsure("there is something after its last field"));
        }
        return Ok((2, None));
    }
    if is_flow(file, &topic.value) {
        return Err(unsure("its fields are in braces: write each on its own line"));
    }
    let line = file.line(topic.key.span.start);
    let head = file.line_span(line).unwrap_or(topic.key.span);
    let first = topic.value.as_mapping().and_then(|entries| entries.first()).map(|first| first.key.span);
    let column = first.and_then(|first| rewrite.column(first)).filter(|(column, begins)| *begins && *column > 0);
    let (by, _) = column.ok_or_else(|| unsure("its fields do not start on their own lines"))?;
    let behind = Span::new(topic.key.span.end, head.end);
    let rest =
        file.slice(behind).trim_start().strip_prefix(':').map(str::trim).ok_or_else(|| unsure("it has no colon"))?;
    match rest {
        "" => {
            let next = file.line_span(line + 1).map_or(head.end, |next| next.start);
            rewrite.replace(Span::new(head.start, next), "");
        }
        comment if comment.starts_with('#') => {
            let hash = head.end - file.slice(behind).len() + file.slice(behind).find('#').unwrap_or(0);
            rewrite.replace(Span::new(topic.key.span.start, hash), " ".repeat(by));
        }
        _ => return Err(unsure("there is something after it on its line")),
    }
    Ok((by, Some(line..=last_line(file, topic))))
}
