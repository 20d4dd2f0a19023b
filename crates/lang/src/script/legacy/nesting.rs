//! The oldest nesting: `sessions:` with `- session:`, `- phase:`, `- topic:` and actions whose fields stand beside `type:`. It
//! is not read, but surely rewritten as today's form (docs/language.md).

use crate::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::script::fields::shortened;
use crate::script::legacy::ids::{Ids, as_scalar, is_id};
use crate::script::legacy::names::{PartKind, PartNames, RouteMeaning};
use crate::script::legacy::parts::{LegacyPart, SESSION, find, today, words};
use crate::script::legacy::proof::proven;
use crate::script::legacy::rewrite::{AmbiguousRewrite, Rewrite, is_flow};
use crate::script::legacy::wrap::in_quotes_of;
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

const ROOT: &str = "sessions";

/// What to do about a route that may mean several parts.
const RENAME: &str = "give the intended part a unique name, use that name in the route, and migrate again";

/// What is to be said of a file whose root is `sessions:`, with the fix that writes it in today's form; `None` for any other
/// file.
pub fn oldest_nesting(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let entry = root.as_mapping()?.iter().find(|entry| entry.key.value == ROOT)?;
    let ours = |node: &YamlNode| ["session", "phases", "stages"].iter().any(|key| node.get(key).is_some());
    let items = entry.value.as_sequence().unwrap_or_default();
    if !ours(&entry.value) && !items.iter().any(|item| ours(item)) || is_todays(&entry.value) {
        return None;
    }
    let message = "this script uses the legacy format with `sessions:` at its root, which is no longer supported";
    let diagnostic = Diagnostic::error("oldest-nesting", message, file, entry.key.span);
    let by_hand = "write one `session:` with `session_id` and `phases`; below that, write `phase_id` and `topics`, then `topic_id` and `actions`, and for each action `action_type`, `action_id` and `config`";
    let session = match items {
        [session] => session,
        [] => return Some(diagnostic.with_help(by_hand)),
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
        Err(unsure) => unsure.told_in(diagnostic, file, by_hand),
    })
}

/// Whether this is a session of today below a mistyped `session:`.
fn is_todays(session: &YamlNode) -> bool {
    let has = |node: &YamlNode, keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    let phases = session.get("phases").and_then(|phases| phases.as_sequence()).unwrap_or_default();
    let older =
        has(session, &["session", "stages"]) || phases.iter().any(|phase| has(phase, &["phase", "stage", "steps"]));
    !older && (has(session, &["session_id"]) || phases.iter().any(|phase| has(phase, &["phase_id"])))
}

/// The edits, proven.
fn rewritten(
    file: &Arc<SourceFile>,
    root: &YamlNode,
    entry: &YamlEntry,
    session: &YamlNode,
) -> Result<Vec<Edit>, AmbiguousRewrite> {
    // Routes may lead to what stands below them: all ids are made before the first is named.
    let first = NestingRewriter::over(file, root, entry, session, None)?;
    let second = NestingRewriter::over(file, root, entry, session, Some(&first.names))?;
    let edits = second.rewrite.finish();
    if proven(file, &edits, &second.made) {
        return Ok(edits);
    }
    Err(AmbiguousRewrite::at(entry.key.span, "its layout does not allow lines to be moved safely"))
}

/// A walk over the file that changes it.
pub struct NestingRewriter<'f> {
    pub rewrite: Rewrite<'f>,
    pub ids: Ids,
    pub names: PartNames,
    /// What all of them were called; routes stay as they are while that is not known.
    known: Option<&'f PartNames>,
    /// What the whole file must say afterwards.
    made: Value,
}

impl<'f> NestingRewriter<'f> {
    fn over(
        file: &'f SourceFile,
        root: &YamlNode,
        entry: &YamlEntry,
        session: &YamlNode,
        known: Option<&'f PartNames>,
    ) -> Result<Self, AmbiguousRewrite> {
        let (rewrite, ids, names) = (Rewrite::of(file), Ids::default(), PartNames::default());
        let mut walk = Self { rewrite, ids, names, known, made: Value::Null };
        written_ids(session, &mut walk.ids);
        walk.rewrite.rename(entry.key.span, "session");
        walk.unlist(entry, session)?;
        let session = walk.part(&SESSION, session, 1)?;
        let mut made = Map::new();
        for other in root.as_mapping().unwrap_or_default() {
            if std::ptr::eq(other, entry) {
                made.insert("session".to_owned(), session.clone());
            } else {
                made.insert(other.key.value.clone(), other.value.to_json());
            }
        }
        walk.made = Value::Object(made);
        Ok(walk)
    }

    /// Takes away what makes the session an item of a list.
    fn unlist(&mut self, entry: &YamlEntry, session: &YamlNode) -> Result<(), AmbiguousRewrite> {
        let file = self.rewrite.file();
        let (list, item) = (entry.value.span, session.span);
        if list.start < entry.key.span.end || item.start < list.start {
            return Err(AmbiguousRewrite::at(entry.key.span, "the session is an alias: write it out in full"));
        }
        if is_flow(file, &entry.value) {
            let blank =
                |span: Span, mark: &[char]| file.slice(span).chars().all(|c| c.is_whitespace() || mark.contains(&c));
            let before = Span::new(list.start, item.start);
            let behind = Span::new(item.end, list.end);
            let all = |span, point| if blank(span, &['[', ',', ']']) { span } else { point };
            self.rewrite.replace(all(before, Span::new(list.start, list.start + 1)), "");
            self.rewrite.replace(all(behind, Span::new(list.end.saturating_sub(1), list.end)), "");
            return Ok(());
        }
        // Where the dashes stand in the column of the key, the list begins behind the first of them for the parser.
        let is_dash = |line: &usize| {
            let text = file.line_span(*line).map_or("", |span| file.slice(span)).trim_start_matches(' ');
            text.strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let mut lines = file.line(entry.key.span.start) + 1..=file.line(item.start);
        let unsure = || AmbiguousRewrite::at(list, "the dash of the session is not where it should be");
        let line = lines.find(is_dash).ok_or_else(unsure)?;
        let whole = file.line_span(line).unwrap_or(list);
        let at = whole.start + file.slice(whole).find('-').unwrap_or(0);
        let dash = Span::new(at, at + 1);
        match file.line_span(line + 1).filter(|_| file.slice(whole).trim() == "-") {
            // A line with a dash alone goes away; so does nothing else.
            Some(next) => self.rewrite.replace(Span::new(whole.start, next.start), ""),
            None => self.rewrite.replace(dash, " "),
        }
        Ok(())
    }

    /// A session, a phase or a topic, the `number`th of its list.
    fn part(&mut self, part: &LegacyPart, node: &YamlNode, number: usize) -> Result<Value, AmbiguousRewrite> {
        let Some(entries) = node.as_mapping() else { return Ok(node.to_json()) };
        let id = find(entries, part.id, &["id"]);
        let title = find(entries, part.name, &["name"]);
        let named = entries.iter().position(|entry| part.names.contains(&entry.key.value.as_str()));
        let named = named.filter(|index| entries.get(*index).is_some_and(|entry| words(entry).is_some()));
        let held = find(entries, part.holds, part.held);
        let goal = find(entries, part.goal, &["goal"]);

        let mut keys: Vec<String> = entries.iter().map(|entry| entry.key.value.clone()).collect();
        let mut call = |index: Option<usize>, plain: &[&str], name: &str| {
            if let Some(key) = index.and_then(|index| keys.get_mut(index)).filter(|key| plain.contains(&key.as_str())) {
                *key = name.to_owned();
            }
        };
        call(id, &["id"], part.id);
        call(title, &["name"], part.name);
        call(held, part.held, part.holds);
        call(goal, &["goal"], part.goal);
        let source = named.or(title).and_then(|index| entries.get(index));
        let mut own = Ids::default();
        let ids = if part.word == "session" { &mut own } else { &mut self.ids };
        let aside = format!("x-{}", part.word);
        let mut new_id = None;
        let mut replaced = None;
        if let Some(written) = id.and_then(|index| entries.get(index)) {
            let text = words(written).map(|scalar| scalar.text.as_str());
            if let Some(text) = text.filter(|text| !is_id(text)) {
                replaced = ids.made(text).map(|made| (written, made));
            }
            call(named, part.names, if title.is_some() { &aside } else { part.name });
        } else if let Some((entry, scalar)) = source.and_then(|entry| Some((entry, words(entry)?))) {
            let is_title = title.is_some() && named.is_some();
            if is_title && is_id(&scalar.text) && ids.takes(&scalar.text) {
                call(named, part.names, part.id);
            } else {
                let made = ids.made(&scalar.text).unwrap_or_else(|| ids.unique(format!("{}_{number}", part.word)));
                new_id = Some((entry, made));
                call(named, part.names, if title.is_some() { &aside } else { part.name });
            }
        }
        self.rename(entries, &keys);
        if let Some((entry, made)) = &new_id {
            self.add_before(node, entry, part.id, made)?;
        }
        if let Some((entry, made)) = &replaced {
            self.say(&entry.value, made);
        }
        let at = |index: Option<usize>| {
            index.and_then(|index| entries.get(index)).and_then(words).map(|scalar| &scalar.text)
        };
        let made = new_id.as_ref().or(replaced.as_ref()).map(|(_, made)| made.clone());
        let id_key = keys.iter().position(|key| key == part.id);
        let own_id = made.or_else(|| at(id_key).cloned()).unwrap_or_default();
        if part.word != "session" && !own_id.is_empty() {
            let called = [named, title, id].into_iter().filter_map(at).map(String::as_str);
            let place = named.or(title).or(id).and_then(|index| entries.get(index));
            self.names.note(PartKind::Place, &own_id, place.map_or(node.span, |entry| entry.value.span), called);
        }

        let mut value = Map::new();
        if let Some((_, made)) = &new_id {
            value.insert(part.id.to_owned(), Value::from(made.as_str()));
        }
        for (index, (entry, key)) in entries.iter().zip(keys).enumerate() {
            let inner = match &replaced {
                Some((other, made)) if std::ptr::eq(*other, entry) => Value::from(made.as_str()),
                _ if Some(index) == held => self.list(part, &entry.value, &own_id)?,
                _ if matches!(today(entry).as_str(), "on_exit" | "triggers") => self.routes(&entry.value)?,
                _ => entry.value.to_json(),
            };
            value.insert(key, inner);
        }
        Ok(Value::Object(value))
    }

    /// The parts of a part.
    fn list(&mut self, part: &LegacyPart, node: &YamlNode, id: &str) -> Result<Value, AmbiguousRewrite> {
        let NodeKind::Sequence(items) = &node.kind else { return Ok(node.to_json()) };
        let Some(inner) = part.inner else { return self.actions(items, node.span, id, &mut Default::default()) };
        let mut made = Vec::new();
        let mut end = node.span.start;
        for (index, item) in items.iter().enumerate() {
            end = behind(item, end)?;
            made.push(self.part(inner, item, index + 1)?);
        }
        Ok(Value::Array(made))
    }

    /// Gives every key the name that stands for it in `keys`.
    pub fn rename(&mut self, entries: &[YamlEntry], keys: &[String]) {
        for (entry, key) in entries.iter().zip(keys).filter(|(entry, key)| entry.key.value != **key) {
            self.rewrite.rename(entry.key.span, key);
        }
    }

    /// Puts a field with an id in front of another one.
    pub fn add_before(
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
        let unsure = || AmbiguousRewrite::at(span, "there is something before this key on its line");
        let (column, _) = self.rewrite.column(span).ok_or_else(unsure)?;
        let margin = " ".repeat(column + self.rewrite.deepened(file.line(span.start)));
        self.rewrite.insert(span.start, format!("{key}: {}\n{margin}", as_scalar(id)));
        Ok(())
    }

    /// Writes an id where another text stands, in the quotes that this has.
    pub fn say(&mut self, node: &YamlNode, id: &str) {
        let text = match self.rewrite.file().slice(node.span).chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{id}{quote}"),
            _ => as_scalar(id),
        };
        self.rewrite.replace(node.span, text);
    }

    /// Routes, where they name a part, with its id.
    pub fn routes(&mut self, node: &YamlNode) -> Result<Value, AmbiguousRewrite> {
        match &node.kind {
            NodeKind::Scalar(_) => Ok(node.to_json()),
            NodeKind::Sequence(items) => items.iter().map(|item| self.routes(item)).collect(),
            NodeKind::Mapping(entries) => {
                let mut made = Map::new();
                for entry in entries {
                    let value = match (entry.key.value.as_str(), words(entry)) {
                        (key @ ("goto" | "insert"), Some(scalar)) => self.route(key, &entry.value, &scalar.text)?,
                        _ => self.routes(&entry.value)?,
                    };
                    made.insert(entry.key.value.clone(), value);
                }
                Ok(Value::Object(made))
            }
        }
    }

    /// Where a route leads that names `name`.
    pub fn route(&mut self, key: &str, node: &YamlNode, name: &str) -> Result<Value, AmbiguousRewrite> {
        let Some(known) = self.known else { return Ok(node.to_json()) };
        let meant = if key == "goto" { known.goto(name) } else { known.insert(name, is_id(name)) };
        let name = shortened(name);
        match meant {
            RouteMeaning::AsWritten => Ok(node.to_json()),
            RouteMeaning::Id(id) => {
                self.say(node, &id);
                Ok(Value::from(id))
            }
            RouteMeaning::Several(places) => {
                let unsure = AmbiguousRewrite::at(
                    node.span,
                    msg!("several parts are called `{name}`, and this may mean any of them"),
                );
                Err(unsure.with(places, "it may mean this", RENAME))
            }
            RouteMeaning::Chance(place) => {
                let unsure = AmbiguousRewrite::at(
                    node.span,
                    msg!("nothing is called `{name}`, so it is unclear what this refers to"),
                );
                Err(unsure.with([place], "this would get the same id by coincidence", RENAME))
            }
            RouteMeaning::OrSkill(place) => {
                let unsure = AmbiguousRewrite::at(
                    node.span,
                    msg!("an action is called `{name}`, but this may refer to a skill"),
                );
                Err(unsure.with([place], "it may mean this", RENAME))
            }
        }
    }
}

/// A field of a mapping in braces, in quotes where the other keys have them.
pub fn flow_field(written: &str, key: &str, id: &str) -> String {
    let value = if written.starts_with('"') { format!("\"{id}\"") } else { as_scalar(id) };
    format!("{}: {value}", in_quotes_of(written, key))
}

/// Where an item of a list ends. What stands before the item above it is there for an alias.
pub fn behind(item: &YamlNode, above: usize) -> Result<usize, AmbiguousRewrite> {
    if item.span.start < above {
        return Err(AmbiguousRewrite::at(
            item.span,
            "an alias repeats this further down: write it out in full there, with its own id",
        ));
    }
    Ok(item.span.end)
}

/// Notes the ids that the author wrote.
fn written_ids(node: &YamlNode, ids: &mut Ids) {
    match &node.kind {
        NodeKind::Scalar(_) => {}
        NodeKind::Sequence(items) => items.iter().for_each(|item| written_ids(item, ids)),
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let is_key = matches!(today(entry).as_str(), "id" | "phase_id" | "topic_id" | "action_id");
                match words(entry).filter(|scalar| is_key && is_id(&scalar.text)) {
                    Some(scalar) => ids.written(&scalar.text),
                    None => written_ids(&entry.value, ids),
                }
            }
        }
    }
}
