//! Edits of a piece of YAML or JSON: one field of a mapping gets a value, and every other byte stays as it is.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::script::legacy_fields::current_spelling;
use crate::script::lines::is_alias;
use crate::source::compose::parse;
use crate::source::core_schema;
use crate::source::diagnostic::Edit;
use crate::source::edits::apply;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{ScalarStyle, YamlEntry, YamlNode};

/// A part of a file that is one node: a step, or the file without its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    text: String,
    /// The column of its first character: the other lines are indented like this.
    column: usize,
}

/// The path of a mapping in a fragment.
#[derive(Clone, Copy, Debug)]
pub enum MappingPath<'p> {
    Root,
    /// The value of this key.
    Key(&'p str),
    /// The item of `sub_tasks` with this id.
    SubTask(&'p str),
}

impl Fragment {
    pub fn new(text: impl Into<String>, column: usize) -> Self {
        Self { text: text.into(), column }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    fn parsed(&self) -> Option<(Arc<SourceFile>, Arc<YamlNode>)> {
        let file = Arc::new(SourceFile::new("", format!("{}{}", " ".repeat(self.column), self.text)));
        let root = parse(&file).root?;
        Some((file, root))
    }

    /// The value as JSON; `None` if it cannot be read on its own.
    pub fn value(&self) -> Option<Value> {
        self.parsed().map(|(_, root)| root.to_json())
    }

    /// Sets the field `name` of the mapping at `path`. Returns the edit in the text of the fragment, or `None` if it already has this
    /// value. A new field comes after the first of `after` that exists, otherwise at the end.
    ///
    /// # Errors
    /// If the text cannot be changed without changing anything else, as with anchors and aliases.
    pub fn edit(
        &self,
        path: MappingPath<'_>,
        name: &str,
        value: &Value,
        after: &[&str],
    ) -> Result<Option<Edit>, UneditableText> {
        let (file, root) = self.parsed().ok_or(UneditableText)?;
        let mapping = find(&root, path).ok_or(UneditableText)?;
        let entries = mapping.as_mapping().ok_or(UneditableText)?;
        let is_named =
            |entry: &&YamlEntry| entry.key.value == name || current_spelling(&entry.key.value).as_deref() == Some(name);
        let writer = FieldWriter { file: &file, mapping };
        let edit = match entries.iter().find(is_named) {
            Some(entry) if entry.value.to_json() == *value => return Ok(None),
            Some(entry) => writer.replaced(entry, value)?,
            None => writer.added(name, value, after)?,
        };
        let changed = apply(file.text(), std::slice::from_ref(&edit)).map_err(|_| UneditableText)?;
        let expected = expected(&root, path, name, value).ok_or(UneditableText)?;
        let after = parse(&Arc::new(SourceFile::new("", changed)));
        if after.root.is_none_or(|root| root.to_json() != expected) {
            return Err(UneditableText);
        }
        let start = edit.span.start.checked_sub(self.column).ok_or(UneditableText)?;
        Ok(Some(Edit::replace(Span::new(start, edit.span.end - self.column), edit.text)))
    }

    /// Applies an edit of [`Fragment::edit`].
    ///
    /// # Errors
    /// If the edit does not belong to this text.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), UneditableText> {
        self.text = apply(&self.text, std::slice::from_ref(edit)).map_err(|_| UneditableText)?;
        Ok(())
    }
}

/// The text cannot be changed in this place without changing anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text cannot be edited")]
pub struct UneditableText;

fn find<'n>(root: &'n YamlNode, path: MappingPath<'_>) -> Option<&'n YamlNode> {
    match path {
        MappingPath::Root => Some(root),
        MappingPath::Key(key) => root.get(key).map(AsRef::as_ref),
        MappingPath::SubTask(id) => {
            let tasks = root.get("sub_tasks")?.as_sequence()?;
            let has_id = |task: &&Arc<YamlNode>| {
                task.get("id").and_then(|node| node.as_scalar()).is_some_and(|scalar| scalar.text == id)
            };
            tasks.iter().find(has_id).map(AsRef::as_ref)
        }
    }
}

/// The value of the fragment after the edit.
fn expected(root: &YamlNode, path: MappingPath<'_>, name: &str, value: &Value) -> Option<Value> {
    let mut all = root.to_json();
    let mapping = match path {
        MappingPath::Root => &mut all,
        MappingPath::Key(key) => all.get_mut(key)?,
        MappingPath::SubTask(id) => {
            let position = root.get("sub_tasks")?.as_sequence()?.iter().position(|task| {
                task.get("id").and_then(|node| node.as_scalar()).is_some_and(|scalar| scalar.text == id)
            })?;
            all.get_mut("sub_tasks")?.get_mut(position)?
        }
    };
    let mapping = mapping.as_object_mut()?;
    let written = mapping.keys().find(|key| current_spelling(key).as_deref() == Some(name)).cloned();
    mapping.insert(written.unwrap_or_else(|| name.to_owned()), value.clone());
    Some(all)
}

/// Writes fields of one mapping in the style of the mapping.
struct FieldWriter<'a> {
    file: &'a SourceFile,
    mapping: &'a YamlNode,
}

impl FieldWriter<'_> {
    fn is_flow(&self) -> bool {
        self.file.slice(self.mapping.span).starts_with('{')
    }

    /// Whether keys have double quotes, as in JSON.
    fn is_json(&self) -> bool {
        let first = self.mapping.as_mapping().and_then(<[YamlEntry]>::first);
        match first {
            Some(entry) => self.file.slice(entry.key.span).starts_with('"'),
            None => self.is_flow(),
        }
    }

    /// The white space before the first key, if it is the first in its line.
    fn indent(&self) -> Option<String> {
        let first = self.mapping.as_mapping()?.first()?;
        let (line, before) = self.before_in_line(first.key.span.start)?;
        match before.trim_matches([' ', '\t']).is_empty() {
            true => Some(before.to_owned()),
            // In a list, the first key follows the dash.
            false if !self.is_flow() => Some(" ".repeat(before.chars().count())),
            false => {
                let _ = line;
                None
            }
        }
    }

    fn before_in_line(&self, at: usize) -> Option<(Span, &str)> {
        let line = self.file.line_span(self.file.line(at))?;
        Some((line, self.file.slice(Span::new(line.start, at))))
    }

    /// The edit that replaces the value of an entry.
    fn replaced(&self, entry: &YamlEntry, value: &Value) -> Result<Edit, UneditableText> {
        if is_alias(entry) {
            return self.replaced_alias(entry, value);
        }
        let span = entry.value.span;
        let old = entry.value.as_scalar();
        let style = old.map(|scalar| scalar.style);
        if matches!(style, Some(ScalarStyle::Literal | ScalarStyle::Folded)) {
            return self.replaced_block(entry, value);
        }
        if !self.follows_key(entry) {
            return Err(UneditableText);
        }
        let is_absent = span.is_empty();
        let text = match (value, style) {
            (Value::String(text), Some(ScalarStyle::SingleQuoted)) if !text.contains(['\'', '\n', '\r']) => {
                format!("'{text}'")
            }
            (Value::String(text), Some(ScalarStyle::Plain)) if !self.is_json() && is_plain(text) => text.clone(),
            _ => self.rendered(value),
        };
        let gap = if is_absent && !self.file.slice(Span::new(0, span.start)).ends_with(' ') { " " } else { "" };
        Ok(Edit::replace(span, format!("{gap}{text}")))
    }

    /// The edit for a value that refers to another one: only the reference is replaced.
    fn replaced_alias(&self, entry: &YamlEntry, value: &Value) -> Result<Edit, UneditableText> {
        let start = self.value_start(entry)?;
        let rest = self.file.text().get(start..).filter(|rest| rest.starts_with('*')).ok_or(UneditableText)?;
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}')).unwrap_or(rest.len());
        Ok(Edit::replace(Span::new(start, start + length), self.rendered(value)))
    }

    /// The edit for a block scalar: its header, which is before its span, is replaced as well, and the end of its last line stays.
    fn replaced_block(&self, entry: &YamlEntry, value: &Value) -> Result<Edit, UneditableText> {
        let start = self.value_start(entry)?;
        let written = self.file.text().get(start..entry.value.span.end).ok_or(UneditableText)?;
        // An anchor or a tag would be lost.
        if !written.starts_with(['|', '>']) {
            return Err(UneditableText);
        }
        let end = start + written.trim_end().len();
        Ok(Edit::replace(Span::new(start, end), self.rendered(value)))
    }

    /// Where what is written as the value of an entry begins, with anchors, tags and headers.
    fn value_start(&self, entry: &YamlEntry) -> Result<usize, UneditableText> {
        let after = entry.key.span.end;
        let rest = self.file.text().get(after..).ok_or(UneditableText)?;
        let value = rest.trim_start().strip_prefix(':').ok_or(UneditableText)?.trim_start();
        Ok(after + rest.len() - value.len())
    }

    /// Whether only white space and the colon are between the key and its value: an anchor or a tag would change its meaning.
    fn follows_key(&self, entry: &YamlEntry) -> bool {
        let between = self.file.text().get(entry.key.span.end..entry.value.span.start).unwrap_or("&");
        between.trim_start().strip_prefix(':').is_some_and(|rest| rest.trim().is_empty() || rest.contains('#'))
    }

    /// The edit that adds an entry.
    fn added(&self, name: &str, value: &Value, after: &[&str]) -> Result<Edit, UneditableText> {
        let entries = self.mapping.as_mapping().unwrap_or_default();
        let key = if self.is_json() || !is_plain(name) { Value::from(name).to_string() } else { name.to_owned() };
        let field = format!("{key}: {}", self.rendered(value));
        let named = after.iter().find_map(|name| entries.iter().find(|entry| entry.key.value == *name));
        let Some(anchor) = named.or(entries.last()) else {
            return Ok(Edit::insert(self.mapping.span.start + 1, field));
        };
        if is_alias(anchor) {
            return Err(UneditableText);
        }
        let end = anchor.value.span.end.max(anchor.key.span.end);
        if self.is_flow() {
            let separator = self.indent().map_or_else(|| " ".to_owned(), |indent| format!("\n{indent}"));
            return Ok(Edit::insert(end, format!(",{separator}{field}")));
        }
        let indent = self.indent().ok_or(UneditableText)?;
        // A comment stays in its line.
        let line_end = self.file.line_span(self.file.line(end)).map_or(end, |line| line.end.max(end));
        let rest = self.file.slice(Span::new(end, line_end)).trim_start();
        let at = if rest.is_empty() || rest.starts_with('#') || rest.starts_with(':') { line_end } else { end };
        Ok(Edit::insert(at, format!("\n{indent}{field}")))
    }

    /// A value as JSON, which is YAML; on several lines if the mapping has one field in each line.
    fn rendered(&self, value: &Value) -> String {
        if let Some(text) = value.as_str().filter(|text| !self.is_json() && is_plain(text)) {
            return text.to_owned();
        }
        if !self.is_flow() || !(value.is_object() || value.is_array()) {
            return spaced(value);
        }
        let Some(indent) = self.indent() else { return spaced(value) };
        let outer = self.before_in_line(self.mapping.span.start).map_or("", |(_, before)| before);
        let outer = outer.len() - outer.trim_start_matches([' ', '\t']).len();
        let unit = indent.get(outer..).filter(|unit| !unit.is_empty()).unwrap_or("  ");
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
        match value.serialize(&mut serializer) {
            Ok(()) => String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}")),
            Err(_) => spaced(value),
        }
    }
}

/// JSON on one line, with a space after each colon and comma. Without the spaces it would not be YAML.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}

/// Whether a text is read as this text without quotes, in a block and in brackets.
fn is_plain(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    let starts_well = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts_well && text.chars().all(is_word) && core_schema::plain(text).is_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(text: &str, column: usize, path: MappingPath<'_>, name: &str, value: &Value, after: &[&str]) -> String {
        let mut fragment = Fragment::new(text, column);
        match fragment.edit(path, name, value, after) {
            Ok(Some(edit)) => fragment.apply(&edit).unwrap(),
            Ok(None) => return "unchanged".into(),
            Err(UneditableText) => return "uneditable".into(),
        }
        fragment.text().to_owned()
    }

    #[test]
    fn a_field_is_written_in_the_style_of_its_mapping() {
        let root = MappingPath::Root;
        let done = json!("completed");
        let result = json!({"exit_code": 0, "stdout": "a: b\n"});
        let table = [
            (r#"{"id": "a", "status": "pending"}"#, 0, "status", &done, r#"{"id": "a", "status": "completed"}"#),
            (r#"{"id":"a"}"#, 2, "status", &done, r#"{"id":"a", "status": "completed"}"#),
            (
                "{\n    \"id\": \"a\"\n  }",
                2,
                "status",
                &done,
                "{\n    \"id\": \"a\",\n    \"status\": \"completed\"\n  }",
            ),
            (
                "{\n      \"id\": \"a\"\n    }",
                4,
                "result",
                &result,
                "{\n      \"id\": \"a\",\n      \"result\": {\n        \"exit_code\": 0,\n        \"stdout\": \"a: b\\n\"\n      }\n    }",
            ),
            ("{\n\t\"id\": \"a\"\n}", 0, "x", &json!([1]), "{\n\t\"id\": \"a\",\n\t\"x\": [\n\t\t1\n\t]\n}"),
            (
                "id: a # first\n    status: pending # soon\n    x: 1",
                4,
                "status",
                &done,
                "id: a # first\n    status: completed # soon\n    x: 1",
            ),
            ("id: a\n  status: 'pending'", 2, "status", &done, "id: a\n  status: 'completed'"),
            ("id: a\n  status:", 2, "status", &done, "id: a\n  status: completed"),
            ("id: a # first", 2, "status", &done, "id: a # first\n  status: completed"),
            ("id: a", 2, "result", &result, "id: a\n  result: {\"exit_code\": 0, \"stdout\": \"a: b\\n\"}"),
            (
                "id: a\n  result:\n    x: 1\n    y: 2\n  z: 3",
                2,
                "result",
                &result,
                "id: a\n  result:\n    {\"exit_code\": 0, \"stdout\": \"a: b\\n\"}\n  z: 3",
            ),
            (
                "id: a\n  text: |\n    two\n    lines",
                2,
                "status",
                &done,
                "id: a\n  text: |\n    two\n    lines\n  status: completed",
            ),
            ("{id: a}", 2, "status", &done, "{id: a, status: completed}"),
            ("id: a\r\n  x: 1", 2, "status", &done, "id: a\r\n  x: 1\r\n  status: completed"),
            ("id: a\n  status: completed", 2, "status", &done, "unchanged"),
            ("id: a\n  status: &s pending\n  x: *s", 2, "status", &done, "uneditable"),
            ("id: &s a\n  status: *s", 2, "status", &done, "id: &s a\n  status: completed"),
            ("{id: &s a, status: *s, x: *s}", 2, "status", &done, "{id: &s a, status: completed, x: *s}"),
            ("id: a\n  status: |\n    pending", 2, "status", &done, "id: a\n  status: completed"),
            (
                "id: a\n  status: >-  # soon\n    pen\n    ding\n\n  # next\n  x: 1",
                2,
                "status",
                &done,
                "id: a\n  status: completed\n\n  # next\n  x: 1",
            ),
            ("id: a\n  status: &s |\n    pending\n  x: *s", 2, "status", &done, "uneditable"),
        ];
        for (text, column, name, value, expected) in table {
            assert_eq!(set(text, column, root, name, value, &[]), expected, "{text}");
        }
        assert_eq!(set("a: 1\n  b: 2", 2, root, "c", &json!(3), &["x", "a"]), "a: 1\n  c: 3\n  b: 2");
    }

    #[test]
    fn fields_of_sub_tasks_and_of_inner_mappings_are_written() {
        let task = "id: p\n  sub_tasks:\n    - id: a\n    - id: b\n      status: pending\n    - {id: 3}";
        let done = json!("completed");
        assert_eq!(set(task, 2, MappingPath::SubTask("b"), "status", &done, &[]), task.replace("pending", "completed"));
        assert_eq!(
            set(task, 2, MappingPath::SubTask("a"), "status", &done, &[]),
            task.replace("- id: a", "- id: a\n      status: completed")
        );
        assert_eq!(set(task, 2, MappingPath::SubTask("3"), "x", &json!(1), &[]), task.replace("3}", "3, x: 1}"));
        assert_eq!(set(task, 2, MappingPath::SubTask("c"), "status", &done, &[]), "uneditable");
        let variables = "{\"variables\": {}}";
        assert_eq!(
            set(variables, 0, MappingPath::Key("variables"), "a", &json!(1), &[]),
            "{\"variables\": {\"a\": 1}}"
        );
    }
}
