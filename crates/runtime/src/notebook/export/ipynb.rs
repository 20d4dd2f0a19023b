//! The `.ipynb` format: nbformat 4.5 as written by the nbformat library of Python, with sorted keys, an indent of one space,
//! and texts as lists of lines. Jupyter therefore changes only edited parts when it saves a file.
//!
//! The crate `nbformat` is not used: it builds a complete notebook in memory and does not keep the order of keys.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::export::output::{CellOutput, read};
use crate::notebook::export::text::{quoted, thinking_text, thinking_title};
use bcc_lang::source::render::markdown::escape_line;

/// The maximum length of an id in nbformat.
const MAX_ID_LENGTH: usize = 64;

/// The prefix of ids that replace ids which nbformat does not allow. An original id with this prefix is replaced as well, so
/// that ids stay unique.
const REPLACED_ID_PREFIX: &str = "bcc-cell-";

/// The metadata key that contains all of our own metadata.
const METADATA_KEY: &str = "bcc";

#[derive(Debug, Default)]
pub struct Ipynb {
    cells: u64,
}

impl Ipynb {
    pub fn head(&self) -> String {
        "{\n \"cells\": [".to_owned()
    }

    pub fn cell(&mut self, cell: &Cell, brief: &NotebookMetadata) -> String {
        let comma = if self.cells == 0 { "\n" } else { ",\n" };
        self.cells += 1;
        format!("{comma}{}", indented(&sorted(value(cell, brief)), 2))
    }

    pub fn tail(&self, brief: &NotebookMetadata) -> String {
        let spec = brief.spec();
        // With the file extension and the lexer, other programs can write and highlight the code.
        let mut language = brief.kernel_language.clone();
        language.insert("name".to_owned(), spec.language.clone().into());
        if spec.language == "python" {
            // What the kernel will say when code first runs.
            for (name, value) in [("file_extension", ".py"), ("mimetype", "text/x-python")] {
                language.entry(name).or_insert_with(|| value.into());
            }
        }
        let mut metadata = json!({
            METADATA_KEY: { "script": brief.script, "session": brief.session, "version": 1 },
            "kernelspec": { "display_name": spec.display_name, "language": spec.language, "name": spec.name },
            "language_info": language,
        });
        if let (Some(title), Some(fields)) = (&brief.title, metadata.as_object_mut()) {
            fields.insert("title".into(), title.clone().into());
        }
        let end = if self.cells == 0 { "]" } else { "\n ]" };
        let metadata = indented(&sorted(metadata), 1);
        format!("{end},\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}}\n", metadata.trim_start())
    }
}

/// A cell in nbformat.
fn value(cell: &Cell, brief: &NotebookMetadata) -> Value {
    let id = if is_valid_id(&cell.id) { cell.id.clone() } else { format!("{REPLACED_ID_PREFIX}{}", cell.number) };
    let (kind, source) = match cell.kind {
        CellKind::Markdown => ("markdown", cell.content.clone()),
        CellKind::Code => ("code", cell.content.clone()),
        CellKind::Thinking => {
            let agent = escape_line(&thinking_title(cell, brief.language));
            ("markdown", quoted(&format!("**{agent}**\n\n{}", thinking_text(cell))))
        }
    };
    let mut value = json!({ "cell_type": kind, "id": id, "metadata": metadata(cell, &id), "source": lines(&source) });
    if let (CellKind::Code, Some(fields)) = (cell.kind, value.as_object_mut()) {
        let outputs: Vec<Value> = cell.outputs.iter().map(|output| output_value(read(output))).collect();
        fields.insert("execution_count".into(), cell.execution_count.into());
        fields.insert("outputs".into(), outputs.into());
    }
    value
}

/// The metadata of a cell: all of our own metadata under one key.
fn metadata(cell: &Cell, id: &str) -> Value {
    let mut ours = match serde_json::to_value(&cell.metadata) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    if cell.kind == CellKind::Thinking {
        ours.insert("type".into(), cell.kind.name().into());
    }
    if id != cell.id {
        ours.insert("id".into(), cell.id.clone().into());
    }
    if let Some(Ok(ended)) = cell.ended.map(serde_json::to_value) {
        ours.insert("ended".into(), ended);
    }
    // What a person has approved is not written: a file may be changed.
    if let (CellKind::Code, Some(writer)) = (cell.kind, &cell.written_by) {
        ours.insert("written_by".into(), writer.clone().into());
    }
    if ours.is_empty() { json!({}) } else { json!({ METADATA_KEY: ours }) }
}

fn output_value(output: CellOutput) -> Value {
    match output {
        CellOutput::Stream { name, text } => json!({ "name": name, "output_type": "stream", "text": lines(&text) }),
        CellOutput::Data { result, data, metadata } => {
            let split = |(mime, value): (String, Value)| match value {
                Value::String(text) if is_split_type(&mime) => (mime, lines(&text)),
                other => (mime, other),
            };
            let data: Map<String, Value> = data.into_iter().map(split).collect();
            match result {
                Some(count) => json!({
                    "data": data, "execution_count": count, "metadata": metadata, "output_type": "execute_result",
                }),
                None => json!({ "data": data, "metadata": metadata, "output_type": "display_data" }),
            }
        }
        CellOutput::Error { name, value, traceback } => {
            json!({ "ename": name, "evalue": value, "output_type": "error", "traceback": traceback })
        }
    }
}

/// Whether nbformat writes data of this type as lines.
fn is_split_type(mime: &str) -> bool {
    mime.starts_with("text/") || matches!(mime, "application/javascript" | "image/svg+xml")
}

fn is_valid_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_ID_LENGTH).contains(&id.len()) && id.bytes().all(allowed) && !id.starts_with(REPLACED_ID_PREFIX)
}

/// A text as a list of its lines including their ends; lines end where `splitlines` of Python ends them.
fn lines(text: &str) -> Value {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let ends = match c {
            '\r' => characters.peek().is_none_or(|(_, next)| *next != '\n'),
            '\n' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            lines.push(Value::from(text.get(start..end).unwrap_or_default()));
            start = end;
        }
    }
    if start < text.len() {
        lines.push(Value::from(text.get(start..).unwrap_or_default()));
    }
    Value::Array(lines)
}

/// The value with sorted keys in all objects.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().map(|(name, field)| (name, sorted(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// JSON with an indent of one space, all lines indented by `depth`. Strings in JSON contain no line breaks.
fn indented(value: &Value, depth: usize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
    // Writing a JSON value cannot fail.
    let _ = value.serialize(&mut serializer);
    let text = String::from_utf8_lossy(&bytes);
    let margin = " ".repeat(depth);
    format!("{margin}{}", text.replace('\n', &format!("\n{margin}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_nbformat_does_not_allow_is_replaced_by_a_unique_one() {
        let id = |number: u64, id: &str| {
            let cell = Cell { number, id: id.into(), ..Cell::default() };
            value(&cell, &NotebookMetadata::default())
        };
        let long = "x".repeat(65);
        for (number, bad) in ["", "图一", "a b", "a.b", &long, "bcc-cell-2"].into_iter().enumerate() {
            let cell = id(number as u64, bad);
            assert_eq!(
                (&cell["id"], &cell["metadata"][METADATA_KEY]["id"]),
                (&json!(format!("bcc-cell-{number}")), &json!(bad))
            );
        }
        let good = id(7, "Code_1-a");
        assert_eq!((&good["id"], &good["metadata"]), (&json!("Code_1-a"), &json!({})));
    }

    #[test]
    fn lines_end_where_python_ends_them() {
        let table: [(&str, &[&str]); 5] = [
            ("", &[]),
            ("a", &["a"]),
            ("a\nb\r\nc\rd\n", &["a\n", "b\r\n", "c\r", "d\n"]),
            ("一\u{2028}二\u{85}三\u{1c}\u{c}", &["一\u{2028}", "二\u{85}", "三\u{1c}", "\u{c}"]),
            ("\n\n", &["\n", "\n"]),
        ];
        for (text, expected) in table {
            assert_eq!(lines(text), json!(expected), "{text:?}");
        }
    }
}
