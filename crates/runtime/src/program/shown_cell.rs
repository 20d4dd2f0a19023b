//! A cell as events tell it: whole where it is short, and never longer than a line may be.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;

/// The most bytes of the texts of one event: its content, its metadata and its outputs together.
const MOST_BYTES: usize = 64_000;

/// The most bytes of one text.
const MOST_TEXT: usize = 16_000;

/// The most bytes of one text of an output.
const MOST_OUTPUT_TEXT: usize = 4_000;

/// What stands in a list or mapping beyond these is left out.
const MOST_ITEMS: usize = 200;

/// About how many bytes a number takes, or a pair of brackets with a comma.
const MOST_NUMBER: usize = 8;

/// How deep values are shown.
const MOST_DEPTH: usize = 12;

/// A cell, as the event `cell` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownCell {
    /// Its place in the notebook, from 1.
    pub number: u64,
    pub cell_id: String,
    /// `markdown`, `code` or `thinking`.
    pub cell_type: &'static str,
    pub content: String,
    /// What stands beside its text; nothing when there is nothing.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// What code gave, as nbformat has it. Binary data is left out: `{"left_out": BYTES}` stands in its place.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub outputs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub ended: Value,
    /// How many bytes are not shown, of texts that were cut and of data that was left out; the store has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

impl ShownCell {
    pub fn of(cell: &Cell) -> Self {
        let mut cut = Cut { left: MOST_BYTES, out: 0 };
        let content = cut.text(&cell.content, MOST_TEXT);
        let of = |value: &Value, most: usize, cut: &mut Cut| cut.value(value, most, MOST_DEPTH);
        let metadata = if cell.metadata.is_empty() { Value::Null } else { json!(cell.metadata) };
        let metadata = of(&metadata, MOST_OUTPUT_TEXT, &mut cut);
        let outputs: Vec<Value> = cell.outputs.iter().take(MOST_ITEMS).map(|output| cut.output(output)).collect();
        let beyond = cell.outputs.iter().skip(MOST_ITEMS);
        cut.out += beyond.map(|output| output.to_string().len()).sum::<usize>();
        Self {
            number: cell.number,
            cell_id: cell.id.clone(),
            cell_type: cell.kind.name(),
            content,
            metadata,
            outputs: if outputs.is_empty() { Value::Null } else { Value::Array(outputs) },
            execution_count: cell.execution_count,
            ended: json!(cell.ended),
            left_out: Some(cut.out).filter(|out| *out > 0),
        }
    }
}

/// What may still be shown, and what was not.
struct Cut {
    left: usize,
    out: usize,
}

impl Cut {
    fn text(&mut self, text: &str, most: usize) -> String {
        let end = text.floor_char_boundary(most.min(self.left));
        let shown = text.get(..end).unwrap_or_default();
        self.left -= shown.len();
        self.out += text.len() - shown.len();
        if shown.len() == text.len() { shown.to_owned() } else { format!("{shown}…") }
    }

    /// An output; `data` of one maps media types to data, which is a text, a list of texts or JSON.
    fn output(&mut self, output: &Value) -> Value {
        let Some(fields) = output.as_object() else { return self.value(output, MOST_OUTPUT_TEXT, MOST_DEPTH) };
        let mut shown = Map::new();
        for (name, value) in fields.iter().take(MOST_ITEMS) {
            let value = match value.as_object().filter(|_| name == "data") {
                Some(data) => self.data(data),
                None => self.value(value, MOST_OUTPUT_TEXT, MOST_DEPTH),
            };
            shown.insert(name.clone(), value);
        }
        Value::Object(shown)
    }

    fn data(&mut self, data: &Map<String, Value>) -> Value {
        let mut shown = Map::new();
        for (media, value) in data.iter().take(MOST_ITEMS) {
            let value = if is_text(media) {
                self.value(value, MOST_OUTPUT_TEXT, MOST_DEPTH)
            } else {
                let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
                self.out += bytes;
                json!({ "left_out": bytes })
            };
            let media = self.text(media, MOST_OUTPUT_TEXT);
            shown.insert(media, value);
        }
        Value::Object(shown)
    }

    fn value(&mut self, value: &Value, most: usize, depth: usize) -> Value {
        // What is no text takes some room, too.
        self.left = self.left.saturating_sub(MOST_NUMBER);
        match value {
            Value::String(text) => Value::String(self.text(text, most)),
            Value::Array(_) | Value::Object(_) if depth == 0 || self.left == 0 => {
                self.out += value.to_string().len();
                Value::Null
            }
            Value::Array(items) => {
                self.out += items.iter().skip(MOST_ITEMS).map(|item| item.to_string().len()).sum::<usize>();
                items.iter().take(MOST_ITEMS).map(|item| self.value(item, most, depth - 1)).collect()
            }
            Value::Object(fields) => {
                self.out += fields.values().skip(MOST_ITEMS).map(|item| item.to_string().len()).sum::<usize>();
                let inner = fields.iter().take(MOST_ITEMS).map(|(name, value)| {
                    let name = self.text(name, most);
                    (name, self.value(value, most, depth - 1))
                });
                Value::Object(inner.collect())
            }
            plain => plain.clone(),
        }
    }
}

/// Whether data of this media type is text that a person can read as it is.
fn is_text(media: &str) -> bool {
    media.starts_with("text/")
        || media.ends_with("json")
        || media.ends_with("+xml")
        || media == "application/javascript"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_cell_is_told_whole() {
        let outputs = vec![
            json!({ "output_type": "stream", "name": "stdout", "text": "42\n" }),
            json!({ "output_type": "execute_result", "data": { "text/plain": ["a", "b"] }, "metadata": {}, "execution_count": 3 }),
        ];
        let cell = Cell { number: 2, id: "c2".into(), content: "print(42)".into(), outputs, ..Cell::default() };
        let shown = json!(ShownCell::of(&cell));
        let expected = json!({ "number": 2, "cell_id": "c2", "cell_type": "markdown", "content": "print(42)", "outputs": cell.outputs });
        assert_eq!(shown, expected);
    }

    #[test]
    fn binary_data_is_left_out_with_its_size() {
        let outputs = vec![
            json!({ "output_type": "display_data", "data": { "image/png": "iVBORw0KGgo=", "text/plain": "<Figure>" } }),
        ];
        let shown = ShownCell::of(&Cell { outputs, ..Cell::default() });
        assert_eq!(shown.outputs.pointer("/0/data/image~1png"), Some(&json!({ "left_out": 12 })));
        assert_eq!(shown.outputs.pointer("/0/data/text~1plain"), Some(&json!("<Figure>")));
        assert_eq!(shown.left_out, Some(12));
    }

    #[test]
    fn however_large_a_cell_is_its_event_is_not() {
        let long = "字".repeat(1_000_000);
        let mut nested = json!("x");
        for _ in 0..100 {
            nested = json!([nested, &long[..300]]);
        }
        let keys: Map<String, Value> = (0..500).map(|key| (format!("{key}{}", "k".repeat(50)), json!(1.5))).collect();
        let outputs: Vec<Value> = (0..300)
            .map(|_| json!({ "output_type": "stream", "text": &long[..3000], "data": { "application/json": &keys }, "more": &nested }))
            .collect();
        let mut cell = Cell { content: long.clone(), outputs, ..Cell::default() };
        cell.metadata.extra = keys;
        cell.metadata.text_array = vec![long; 3];
        let shown = ShownCell::of(&cell);
        let line = json!(shown).to_string();
        assert!(line.len() < 4 * MOST_BYTES, "{}", line.len());
        assert!(shown.content.ends_with('…') && shown.content.len() <= MOST_TEXT + 3);
        assert!(shown.left_out.is_some_and(|out| out > 3_000_000));
    }
}
