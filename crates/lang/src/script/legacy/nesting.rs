//! Converts the oldest format: `sessions:` with `- session:`, `- phase:`, `- topic:`, and actions with their fields next to
//! `type:`. It is not read, only converted to the current format (docs/language.md).

use crate::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::fields::shortened;
use crate::script::legacy::ids::{Ids, as_scalar, is_id};
use crate::script::legacy::names::{PartKind, PartNames, RouteMeaning};
use crate::script::legacy::parts::{LegacyPart, SESSION, current_key, find, scalar_of};
use crate::script::legacy::proof::verify;
use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow};
use crate::script::legacy::wrap::in_quotes_of;
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

const ROOT: &str = "sessions";

/// The help for an ambiguous route.
const RENAME: &str = "give the intended part a unique name, use that name in the route, and migrate again";

/// The diagnostic of a file whose root is `sessions:`, with the fix that converts it; `None` for any other file.
pub fn convert_oldest_nesting(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let entry = root.as_mapping()?.iter().find(|entry| entry.key.value == ROOT)?;
    let is_session = |node: &YamlNode| ["session", "phases", "stages"].iter().any(|key| node.get(key).is_some());
    let items = entry.value.as_sequence().unwrap_or_default();
    if !is_session(&entry.value) && !items.iter().any(|item| is_session(item)) || is_current_format(&entry.value) {
        return None;
    }
    let message = "this script uses the legacy format with `sessions:` at its root, which is no longer supported";
    let diagnostic = Diagnostic::error("oldest-nesting", message, file, entry.key.span);
    let manual_help = "write one `session:` with `session_id` and `phases`; below that, write `phase_id` and `topics`, then `topic_id` and `actions`, and for each action `action_type`, `action_id` and `config`";
    let session = match items {
        [session] => session,
        [] => return Some(diagnostic.with_help(manual_help)),
        [_, others @ ..] => {
            let help = "a file can contain only one session: put each session in its own file, below a line `sessions:`, and migrate those files";
            let diagnostic = diagnostic.with_help(help);
            return Some(others.iter().fold(diagnostic, |diagnostic, other| {
                let start =
                    other.as_mapping().and_then(|entries| entries.first()).map_or(other.span, |first| first.key.span);
                diagnostic.with_related("another session starts here", file, start)
            }));
        }
    };
    Some(match rewritten(file, root, entry, session) {
        Ok(edits) => diagnostic
            .with_help(msg!("run `bcc-script migrate --write {}` to convert it to the current format", file.name()))
            .with_sure_fix("convert it to the current format", edits),
        Err(ambiguous) => ambiguous.add_to(diagnostic, file, manual_help),
    })
}

/// Whether this is a session in the current format below a misspelled `session:`.
fn is_current_format(session: &YamlNode) -> bool {
    let has = |node: &YamlNode, keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    let phases = session.get("phases").and_then(|phases| phases.as_sequence()).unwrap_or_default();
    let legacy =
        has(session, &["session", "stages"]) || phases.iter().any(|phase| has(phase, &["phase", "stage", "steps"]));
    !legacy && (has(session, &["session_id"]) || phases.iter().any(|phase| has(phase, &["phase_id"])))
}

/// The edits that convert the file, verified.
fn rewritten(
    file: &Arc<SourceFile>,
    root: &YamlNode,
    entry: &YamlEntry,
    session: &YamlNode,
) -> Result<Vec<Edit>, AmbiguousRewrite> {
    // Routes may refer to parts below them, so all ids are created before any is used.
    let first = NestingRewriter::new(file, root, entry, session, None)?;
    let second = NestingRewriter::new(file, root, entry, session, Some(&first.names))?;
    let edits = second.rewrite.finish();
    if verify(file, &edits, &second.expected) {
        return Ok(edits);
    }
    Err(AmbiguousRewrite::at(entry.key.span, "its layout does not allow lines to be moved safely"))
}

/// Rewrites the file while walking over it.
pub(crate) struct NestingRewriter<'f> {
    pub rewrite: Rewrite<'f>,
    pub ids: Ids,
    pub names: PartNames,
    /// The names of all parts. While they are unknown, routes are not changed.
    known: Option<&'f PartNames>,
    /// The expected value of the file after the rewrite.
    expected: Value,
}

impl<'f> NestingRewriter<'f> {
    fn new(
        file: &'f SourceFile,
        root: &YamlNode,
        entry: &YamlEntry,
        session: &YamlNode,
        known: Option<&'f PartNames>,
    ) -> Result<Self, AmbiguousRewrite> {
        let (rewrite, ids, names) = (Rewrite::of(file), Ids::default(), PartNames::default());
        let mut walk = Self { rewrite, ids, names, known, expected: Value::Null };
        reserve_ids(session, &mut walk.ids);
        walk.rewrite.rename(entry.key.span, "session");
        walk.unlist(entry, session)?;
        let session = walk.part(&SESSION, session, 1)?;
        let mut root_fields = Map::new();
        for other in root.as_mapping().unwrap_or_default() {
            if std::ptr::eq(other, entry) {
                root_fields.insert("session".to_owned(), session.clone());
            } else {
                root_fields.insert(other.key.value.clone(), other.value.to_json());
            }
        }
        walk.expected = Value::Object(root_fields);
        Ok(walk)
    }

    /// Removes the list around the session.
    fn unlist(&mut self, entry: &YamlEntry, session: &YamlNode) -> Result<(), AmbiguousRewrite> {
        let file = self.rewrite.file();
        let (list, item) = (entry.value.span, session.span);
        if list.start < entry.key.span.end || item.start < list.start {
            return Err(AmbiguousRewrite::at(entry.key.span, "the session is an alias: write it out in full"));
        }
        if is_flow(file, &entry.value) {
            let contains_only =
                |span: Span, mark: &[char]| file.slice(span).chars().all(|c| c.is_whitespace() || mark.contains(&c));
            let before = Span::new(list.start, item.start);
            let after = Span::new(item.end, list.end);
            let removable = |span, point| if contains_only(span, &['[', ',', ']']) { span } else { point };
            self.rewrite.replace(removable(before, Span::new(list.start, list.start + 1)), "");
            self.rewrite.replace(removable(after, Span::new(list.end.saturating_sub(1), list.end)), "");
            return Ok(());
        }
        // If the dashes are in the column of the key, the parser starts the list after the first dash.
        let is_dash = |line: &usize| {
            let text = file.line_span(*line).map_or("", |span| file.slice(span)).trim_start_matches(' ');
            text.strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let mut lines = file.line(entry.key.span.start) + 1..=file.line(item.start);
        let ambiguous = || AmbiguousRewrite::at(list, "the dash of the session is not where it should be");
        let line = lines.find(is_dash).ok_or_else(ambiguous)?;
        let full_line = file.line_span(line).unwrap_or(list);
        let at = full_line.start + file.slice(full_line).find('-').unwrap_or(0);
        let dash = Span::new(at, at + 1);
        match file.line_span(line + 1).filter(|_| file.slice(full_line).trim() == "-") {
            // A line with only a dash is removed; nothing else changes.
            Some(next) => self.rewrite.replace(Span::new(full_line.start, next.start), ""),
            None => self.rewrite.replace(dash, " "),
        }
        Ok(())
    }

    /// Rewrites a session, a phase or a topic, which is the `number`th of its list.
    fn part(&mut self, part: &LegacyPart, node: &YamlNode, number: usize) -> Result<Value, AmbiguousRewrite> {
        let Some(entries) = node.as_mapping() else { return Ok(node.to_json()) };
        let id = find(entries, part.id, &["id"]);
        let title = find(entries, part.name, &["name"]);
        let named = entries.iter().position(|entry| part.names.contains(&entry.key.value.as_str()));
        let named = named.filter(|index| entries.get(*index).is_some_and(|entry| scalar_of(entry).is_some()));
        let list_index = find(entries, part.list_key, part.legacy_list_keys);
        let goal = find(entries, part.goal, &["goal"]);

        let mut keys: Vec<String> = entries.iter().map(|entry| entry.key.value.clone()).collect();
        let mut set_key = |index: Option<usize>, old_keys: &[&str], name: &str| {
            if let Some(key) =
                index.and_then(|index| keys.get_mut(index)).filter(|key| old_keys.contains(&key.as_str()))
            {
                *key = name.to_owned();
            }
        };
        set_key(id, &["id"], part.id);
        set_key(title, &["name"], part.name);
        set_key(list_index, part.legacy_list_keys, part.list_key);
        set_key(goal, &["goal"], part.goal);
        let source = named.or(title).and_then(|index| entries.get(index));
        let mut session_ids = Ids::default();
        let ids = if part.kind == "session" { &mut session_ids } else { &mut self.ids };
        let custom_key = format!("x-{}", part.kind);
        let mut new_id = None;
        let mut replaced = None;
        if let Some(written) = id.and_then(|index| entries.get(index)) {
            let text = scalar_of(written).map(|scalar| scalar.text.as_str());
            if let Some(text) = text.filter(|text| !is_id(text)) {
                replaced = ids.create(text).map(|created| (written, created));
            }
            set_key(named, part.names, if title.is_some() { &custom_key } else { part.name });
        } else if let Some((entry, scalar)) = source.and_then(|entry| Some((entry, scalar_of(entry)?))) {
            let is_title = title.is_some() && named.is_some();
            if is_title && is_id(&scalar.text) && ids.try_take(&scalar.text) {
                set_key(named, part.names, part.id);
            } else {
                let created = ids.create(&scalar.text).unwrap_or_else(|| ids.unique(format!("{}_{number}", part.kind)));
                new_id = Some((entry, created));
                set_key(named, part.names, if title.is_some() { &custom_key } else { part.name });
            }
        }
        self.rename(entries, &keys);
        if let Some((entry, created)) = &new_id {
            self.add_before(node, entry, part.id, created)?;
        }
        if let Some((entry, created)) = &replaced {
            self.write_id(&entry.value, created);
        }
        let text_at = |index: Option<usize>| {
            index.and_then(|index| entries.get(index)).and_then(scalar_of).map(|scalar| &scalar.text)
        };
        let created = new_id.as_ref().or(replaced.as_ref()).map(|(_, created)| created.clone());
        let id_key = keys.iter().position(|key| key == part.id);
        let own_id = created.or_else(|| text_at(id_key).cloned()).unwrap_or_default();
        if part.kind != "session" && !own_id.is_empty() {
            let called = [named, title, id].into_iter().filter_map(text_at).map(String::as_str);
            let place = named.or(title).or(id).and_then(|index| entries.get(index));
            self.names.note(PartKind::Place, &own_id, place.map_or(node.span, |entry| entry.value.span), called);
        }

        let mut value = Map::new();
        if let Some((_, created)) = &new_id {
            value.insert(part.id.to_owned(), Value::from(created.as_str()));
        }
        for (index, (entry, key)) in entries.iter().zip(keys).enumerate() {
            let inner = match &replaced {
                Some((other, created)) if std::ptr::eq(*other, entry) => Value::from(created.as_str()),
                _ if Some(index) == list_index => self.list(part, &entry.value, &own_id)?,
                _ if matches!(current_key(entry).as_str(), "on_exit" | "triggers") => self.routes(&entry.value)?,
                _ => entry.value.to_json(),
            };
            value.insert(key, inner);
        }
        Ok(Value::Object(value))
    }

    /// Rewrites the parts of a part.
    fn list(&mut self, part: &LegacyPart, node: &YamlNode, id: &str) -> Result<Value, AmbiguousRewrite> {
        let NodeKind::Sequence(items) = &node.kind else { return Ok(node.to_json()) };
        let Some(inner) = part.inner else { return self.actions(items, node.span, id, &mut Default::default()) };
        let mut rewritten = Vec::new();
        let mut previous_end = node.span.start;
        for (index, item) in items.iter().enumerate() {
            previous_end = item_end(item, previous_end)?;
            rewritten.push(self.part(inner, item, index + 1)?);
        }
        Ok(Value::Array(rewritten))
    }

    /// Renames every key to the name at its index in `keys`.
    pub(crate) fn rename(&mut self, entries: &[YamlEntry], keys: &[String]) {
        for (entry, key) in entries.iter().zip(keys).filter(|(entry, key)| entry.key.value != **key) {
            self.rewrite.rename(entry.key.span, key);
        }
    }

    /// Inserts a field with an id before another field.
    pub(crate) fn add_before(
        &mut self,
        node: &YamlNode,
        entry: &YamlEntry,
        key: &str,
        id: &str,
    ) -> Result<(), AmbiguousRewrite> {
        let file = self.rewrite.file();
        let span = entry.key.span;
        let written = file.slice(span);
        if is_flow(file, node) {
            self.rewrite.insert(span.start, format!("{}, ", flow_field(written, key, id)));
            return Ok(());
        }
        let ambiguous = || AmbiguousRewrite::at(span, "there is something before this key on its line");
        let (column, _) = self.rewrite.column(span).ok_or_else(ambiguous)?;
        let margin = " ".repeat(column + self.rewrite.added_indent(file.line(span.start)));
        self.rewrite.insert(span.start, format!("{key}: {}\n{margin}", as_scalar(id)));
        Ok(())
    }

    /// Replaces a text by an id and keeps its quotes.
    pub(crate) fn write_id(&mut self, node: &YamlNode, id: &str) {
        let text = match self.rewrite.file().slice(node.span).chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{id}{quote}"),
            _ => as_scalar(id),
        };
        self.rewrite.replace(node.span, text);
    }

    /// Rewrites routes that name a part to use its id.
    pub(crate) fn routes(&mut self, node: &YamlNode) -> Result<Value, AmbiguousRewrite> {
        match &node.kind {
            NodeKind::Scalar(_) => Ok(node.to_json()),
            NodeKind::Sequence(items) => items.iter().map(|item| self.routes(item)).collect(),
            NodeKind::Mapping(entries) => {
                let mut rewritten = Map::new();
                for entry in entries {
                    let value = match (entry.key.value.as_str(), scalar_of(entry)) {
                        (key @ ("goto" | "insert"), Some(scalar)) => self.route(key, &entry.value, &scalar.text)?,
                        _ => self.routes(&entry.value)?,
                    };
                    rewritten.insert(entry.key.value.clone(), value);
                }
                Ok(Value::Object(rewritten))
            }
        }
    }

    /// Rewrites a route that names `name`.
    pub(crate) fn route(&mut self, key: &str, node: &YamlNode, name: &str) -> Result<Value, AmbiguousRewrite> {
        let Some(known) = self.known else { return Ok(node.to_json()) };
        let meaning = if key == "goto" { known.goto(name) } else { known.insert(name, is_id(name)) };
        let name = shortened(name);
        match meaning {
            RouteMeaning::AsWritten => Ok(node.to_json()),
            RouteMeaning::Id(id) => {
                self.write_id(node, &id);
                Ok(Value::from(id))
            }
            RouteMeaning::Several(places) => {
                let ambiguous = AmbiguousRewrite::at(
                    node.span,
                    msg!("several parts are called `{name}`, and this may mean any of them"),
                );
                Err(ambiguous.with(places, "it may mean this", RENAME))
            }
            RouteMeaning::Coincidence(place) => {
                let ambiguous = AmbiguousRewrite::at(
                    node.span,
                    msg!("nothing is called `{name}`, so it is unclear what this refers to"),
                );
                Err(ambiguous.with([place], "this would get the same id by coincidence", RENAME))
            }
            RouteMeaning::OrSkill(place) => {
                let ambiguous = AmbiguousRewrite::at(
                    node.span,
                    msg!("an action is called `{name}`, but this may refer to a skill"),
                );
                Err(ambiguous.with([place], "it may mean this", RENAME))
            }
        }
    }
}

/// A field of a flow mapping, quoted if the other keys are.
pub(crate) fn flow_field(written: &str, key: &str, id: &str) -> String {
    let value = if written.starts_with('"') { format!("\"{id}\"") } else { as_scalar(id) };
    format!("{}: {value}", in_quotes_of(written, key))
}

/// The end of an item of a list. An item that starts before the end of the previous one is an alias, which is an error.
pub fn item_end(item: &YamlNode, previous_end: usize) -> Result<usize, AmbiguousRewrite> {
    if item.span.start < previous_end {
        return Err(AmbiguousRewrite::at(
            item.span,
            "an alias repeats this further down: write it out in full there, with its own id",
        ));
    }
    Ok(item.span.end)
}

/// Reserves the ids that the author wrote.
pub(crate) fn reserve_ids(node: &YamlNode, ids: &mut Ids) {
    match &node.kind {
        NodeKind::Scalar(_) => {}
        NodeKind::Sequence(items) => items.iter().for_each(|item| reserve_ids(item, ids)),
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let is_key = matches!(current_key(entry).as_str(), "id" | "phase_id" | "topic_id" | "action_id");
                match scalar_of(entry).filter(|scalar| is_key && is_id(&scalar.text)) {
                    Some(scalar) => ids.reserve(&scalar.text),
                    None => reserve_ids(&entry.value, ids),
                }
            }
        }
    }
}
