//! A cell as events report it: complete if it is short, and never longer than a line may be.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;
use crate::notebook::large_outputs::{KEPT, missing_types};

/// The maximum number of text bytes of one event: content, metadata and outputs together.
const MAX_BYTES: usize = 64_000;

/// The maximum number of bytes of one text.
const MAX_TEXT_BYTES: usize = 16_000;

/// The maximum number of bytes of one text of an output.
const MAX_OUTPUT_TEXT_BYTES: usize = 4_000;

/// The maximum number of items of a list or mapping; further ones are left out.
const MAX_ITEMS: usize = 200;

/// The approximate number of bytes of a number, or of a pair of brackets with a comma.
const NUMBER_BYTES: usize = 8;

/// The maximum nesting depth of shown values.
const MAX_DEPTH: usize = 12;

/// The field of an output with the number of lines of its text that are not shown.
pub const LINES_LEFT_OUT: &str = "left_out_lines";

/// A cell, as in the event `cell`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownCell {
    /// Its number in the notebook, from 1.
    pub number: u64,
    pub cell_id: String,
    /// `markdown`, `code` or `thinking`.
    pub cell_type: &'static str,
    pub content: String,
    /// The metadata; null if there is none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// The outputs of code, in the nbformat structure. Binary data is replaced by `{"left_out": BYTES}`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub outputs: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub ended: Value,
    /// The number of bytes that are not shown, of truncated texts and omitted data; the store has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

impl ShownCell {
    pub fn of(cell: &Cell) -> Self {
        let mut truncator = CellTruncator { space: MAX_BYTES, omitted: 0 };
        let content = truncator.text(&cell.content, MAX_TEXT_BYTES);
        let metadata = if cell.metadata.is_empty() { Value::Null } else { json!(cell.metadata) };
        let metadata = truncator.value(&metadata, MAX_OUTPUT_TEXT_BYTES, MAX_DEPTH);
        let outputs: Vec<Value> = cell.outputs.iter().take(MAX_ITEMS).map(|output| truncator.output(output)).collect();
        let beyond = cell.outputs.iter().skip(MAX_ITEMS);
        truncator.omitted += beyond.map(|output| output.to_string().len()).sum::<usize>();
        Self {
            number: cell.number,
            cell_id: cell.id.clone(),
            cell_type: cell.kind.name(),
            content,
            metadata,
            outputs: if outputs.is_empty() { Value::Null } else { Value::Array(outputs) },
            execution_count: cell.execution_count,
            ended: json!(cell.ended),
            left_out: Some(truncator.omitted).filter(|bytes| *bytes > 0),
        }
    }
}

/// The remaining space, and the number of omitted bytes.
struct CellTruncator {
    space: usize,
    omitted: usize,
}

impl CellTruncator {
    fn text(&mut self, text: &str, max_bytes: usize) -> String {
        let end = text.floor_char_boundary(max_bytes.min(self.space));
        let shown = text.get(..end).unwrap_or_default();
        self.space -= shown.len();
        self.omitted += text.len() - shown.len();
        if shown.len() == text.len() { shown.to_owned() } else { format!("{shown}…") }
    }

    /// An output; its `data` maps media types to data, which is a text, a list of texts or JSON.
    fn output(&mut self, output: &Value) -> Value {
        let Some(fields) = output.as_object() else { return self.value(output, MAX_OUTPUT_TEXT_BYTES, MAX_DEPTH) };
        let mut shown = Map::new();
        for (name, value) in fields.iter().take(MAX_ITEMS).filter(|(name, _)| *name != KEPT) {
            let value = match value.as_object().filter(|_| name == "data") {
                Some(data) => self.data(data),
                None => self.value(value, MAX_OUTPUT_TEXT_BYTES, MAX_DEPTH),
            };
            shown.insert(name.clone(), value);
        }
        let lines = lines_left_out(output, &shown);
        if lines > 0 {
            shown.insert(LINES_LEFT_OUT.to_owned(), json!(lines));
        }
        let missing = missing_types(output);
        if let Some(data) = shown.get_mut("data").and_then(Value::as_object_mut).filter(|_| !missing.is_empty()) {
            for (media, bytes) in missing {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.omitted = self.omitted.saturating_add(bytes);
                data.insert(media, json!({ "left_out": bytes }));
            }
        }
        Value::Object(shown)
    }

    fn data(&mut self, data: &Map<String, Value>) -> Value {
        let mut shown = Map::new();
        for (media, value) in data.iter().take(MAX_ITEMS) {
            let value = if is_text(media) {
                self.value(value, MAX_OUTPUT_TEXT_BYTES, MAX_DEPTH)
            } else {
                let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
                self.omitted += bytes;
                json!({ "left_out": bytes })
            };
            let media = self.text(media, MAX_OUTPUT_TEXT_BYTES);
            shown.insert(media, value);
        }
        Value::Object(shown)
    }

    fn value(&mut self, value: &Value, max_bytes: usize, depth: usize) -> Value {
        // Values other than texts take some space, too.
        self.space = self.space.saturating_sub(NUMBER_BYTES);
        match value {
            Value::String(text) => Value::String(self.text(text, max_bytes)),
            Value::Array(_) | Value::Object(_) if depth == 0 || self.space == 0 => {
                self.omitted += value.to_string().len();
                Value::Null
            }
            Value::Array(items) => {
                self.omitted += items.iter().skip(MAX_ITEMS).map(|item| item.to_string().len()).sum::<usize>();
                items.iter().take(MAX_ITEMS).map(|item| self.value(item, max_bytes, depth - 1)).collect()
            }
            Value::Object(fields) => {
                self.omitted += fields.values().skip(MAX_ITEMS).map(|item| item.to_string().len()).sum::<usize>();
                let inner = fields.iter().take(MAX_ITEMS).map(|(name, value)| {
                    let name = self.text(name, max_bytes);
                    (name, self.value(value, max_bytes, depth - 1))
                });
                Value::Object(inner.collect())
            }
            plain => plain.clone(),
        }
    }
}

/// The number of lines of the readable text of an output that are not shown.
fn lines_left_out(output: &Value, shown: &Map<String, Value>) -> usize {
    let of_output = ["/text", "/data/text~1plain"].iter().filter_map(|place| output.pointer(place)?.as_str());
    let data = shown.get("data").and_then(|data| data.get("text/plain"));
    let of_shown = shown.get("text").into_iter().chain(data).filter_map(Value::as_str);
    let lines = |text: &str| text.lines().count();
    of_output.map(lines).sum::<usize>().saturating_sub(of_shown.map(lines).sum())
}

/// Whether data of this media type is readable text.
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
    fn a_short_cell_is_shown_completely() {
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
    fn the_lines_that_a_shown_text_lacks_are_counted() {
        let long = |end: &str| (1..=2_000).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n") + end;
        let windows = long("").replace('\n', "\r\n");
        for text in [long(""), long("\n"), windows, "one".into(), "one\n".into(), String::new(), "x".repeat(9_000)] {
            for output in [
                json!({ "output_type": "stream", "name": "stdout", "text": text }),
                json!({ "output_type": "display_data", "data": { "text/plain": text, "text/html": text } }),
            ] {
                let shown = ShownCell::of(&Cell { outputs: vec![output], ..Cell::default() }).outputs;
                let place = if shown.pointer("/0/text").is_some() { "/0/text" } else { "/0/data/text~1plain" };
                let lines = shown.pointer(place).unwrap().as_str().unwrap().lines().count();
                let more = shown.pointer("/0/left_out_lines").and_then(Value::as_u64).unwrap_or(0);
                assert_eq!(lines as u64 + more, text.lines().count() as u64, "{:.20?}", text);
            }
        }
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
    fn the_event_of_a_large_cell_is_limited() {
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
        assert!(line.len() < 4 * MAX_BYTES, "{}", line.len());
        assert!(shown.content.ends_with('…') && shown.content.len() <= MAX_TEXT_BYTES + 3);
        assert!(shown.left_out.is_some_and(|out| out > 3_000_000));
    }
}
