//! Limits the parts of a payload to a fixed size: texts, lists, variables, cells and outputs.

use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;
use crate::notebook::json_size::json_size;

/// The maximum size of the content of one cell, in bytes.
pub const MAX_CONTENT_BYTES: usize = 4_000;

/// The maximum size of the text of one output, in bytes.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1_000;

/// The maximum number of outputs of one cell. The last ones are sent, because an error comes last.
pub(crate) const MAX_OUTPUTS: usize = 5;

/// The maximum size of an id or of one text in the metadata of a cell, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// The maximum size of one variable, in bytes.
pub(crate) const MAX_VARIABLE_BYTES: usize = 2_000;

/// The mark at the end of a cut text.
const ELLIPSIS: &str = "…";

/// The size of a value as JSON, in bytes.
pub fn size(value: &Value) -> usize {
    json_size(value)
}

/// `text`, cut to at most `max` bytes between characters.
pub fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let start = text.get(..text.floor_char_boundary(max.saturating_sub(ELLIPSIS.len()))).unwrap_or_default();
    format!("{start}{ELLIPSIS}")
}

/// The last of `items` that fit into `max` bytes in total, each cut to [`MAX_NAME_BYTES`] times `factor`.
pub fn last<'a>(items: impl DoubleEndedIterator<Item = &'a String>, factor: usize, max: usize) -> Vec<Value> {
    let mut values = fitting(items.rev().map(|item| Value::from(cut(item, MAX_NAME_BYTES * factor))), max);
    values.reverse();
    values
}

/// The first of `items` that fit into `max` bytes in total, each cut as in [`last`].
pub fn first<'a>(items: impl Iterator<Item = &'a String>, factor: usize, max: usize) -> Vec<Value> {
    fitting(items.map(|item| Value::from(cut(item, MAX_NAME_BYTES * factor))), max)
}

/// The first items that fit into `max` bytes in total.
pub(crate) fn fitting(items: impl Iterator<Item = Value>, max: usize) -> Vec<Value> {
    let mut available = max;
    items
        .map_while(|item| {
            available = available.checked_sub(size(&item) + 1)?;
            Some(item)
        })
        .collect()
}

/// Variables that fit into `max` bytes in total. A large text is cut; any other large value is replaced by a description.
pub fn variables(all: impl Iterator<Item = (String, Value)>, max: usize) -> Map<String, Value> {
    let mut available = max;
    let mut variables = Map::new();
    for (name, value) in all {
        let value = match value {
            Value::String(text) => Value::String(cut(&text, MAX_VARIABLE_BYTES)),
            value if size(&value) <= MAX_VARIABLE_BYTES => value,
            Value::Array(items) => Value::String(format!("[{} items]", items.len())),
            Value::Object(fields) => Value::String(format!("{{{} fields}}", fields.len())),
            other => other,
        };
        let Some(rest) = available.checked_sub(size(&value) + name.len() + 4) else { continue };
        available = rest;
        variables.insert(name, value);
    }
    variables
}

/// A cell in the form in which it is sent.
pub fn cell(cell: &Cell) -> Value {
    let mut sent = json!({
        "id": cut(&cell.id, MAX_NAME_BYTES),
        "type": cell.kind.name(),
        "content": cut(&cell.content, MAX_CONTENT_BYTES),
    });
    let Some(fields) = sent.as_object_mut() else { return sent };
    let metadata = metadata(cell);
    if !metadata.is_empty() {
        fields.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if !cell.outputs.is_empty() {
        let skipped = cell.outputs.len().saturating_sub(MAX_OUTPUTS);
        let outputs: Vec<Value> = cell.outputs.iter().skip(skipped).map(output).collect();
        fields.insert("outputs".to_owned(), Value::Array(outputs));
    }
    sent
}

/// The metadata of a cell, without the texts of a thinking cell, which its content repeats.
fn metadata(cell: &Cell) -> Map<String, Value> {
    const REPEATED: [&str; 3] = ["thinking_text", "custom_text", "text_array"];
    let Ok(Value::Object(all)) = serde_json::to_value(&cell.metadata) else { return Map::new() };
    let entries = all.into_iter().filter(|(name, _)| !REPEATED.contains(&name.as_str()));
    entries
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some((name, Value::String(cut(&text, MAX_NAME_BYTES)))),
            value => (size(&value) <= MAX_NAME_BYTES).then_some((name, value)),
        })
        .collect()
}

/// An output of nbformat 4.5 with its text, without images and tracebacks.
fn output(output: &Value) -> Value {
    let text = |value: Option<&Value>| cut(&joined(value), MAX_OUTPUT_BYTES);
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or("display_data");
    match kind {
        "stream" => json!({"output_type": kind, "text": text(output.get("text"))}),
        "error" => json!({
            "output_type": kind,
            "ename": cut(&joined(output.get("ename")), MAX_NAME_BYTES),
            "evalue": text(output.get("evalue")),
        }),
        _ => {
            let plain = text(output.pointer("/data/text~1plain"));
            json!({"output_type": cut(kind, MAX_NAME_BYTES), "data": {"text/plain": plain}})
        }
    }
}

/// A text of nbformat, which may be a list of lines. Only the part that is needed is joined.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => cut(text, MAX_OUTPUT_BYTES + ELLIPSIS.len()),
        Some(Value::Array(lines)) => {
            let mut text = String::new();
            for line in lines.iter().filter_map(Value::as_str) {
                text += &cut(line, MAX_OUTPUT_BYTES + ELLIPSIS.len());
                if text.len() > MAX_OUTPUT_BYTES {
                    break;
                }
            }
            text
        }
        _ => String::new(),
    }
}

/// The text of the last of `outputs` in the form in which they are sent, which is the result of the last code.
pub fn text_of(outputs: &[Value]) -> Option<String> {
    let output = outputs.last()?;
    let text = output.get("text").or_else(|| output.pointer("/data/text~1plain")).or_else(|| output.get("evalue"))?;
    text.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::cell::{CellKind, Metadata};

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc…");
        assert_eq!(cut("一二三", 8), "一…");
        assert_eq!(cut("一二三", 2), "…");
    }

    #[test]
    fn outputs_keep_their_text_without_images_and_tracebacks() {
        let mut ran = Cell { id: "c".into(), kind: CellKind::Code, content: "x".into(), ..Cell::default() };
        ran.metadata = Metadata { thinking_text: Some("secret".into()), ..Metadata::default() };
        ran.outputs = vec![
            json!({"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}),
            json!({"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}, "metadata": {}}),
            json!({"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": ["long"]}),
        ];
        let sent = cell(&ran);
        assert_eq!(
            sent,
            json!({"id": "c", "type": "code", "content": "x", "outputs": [
                {"output_type": "stream", "text": "one\ntwo\n"},
                {"output_type": "display_data", "data": {"text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "NameError", "evalue": "x"},
            ]})
        );
        assert_eq!(text_of(sent["outputs"].as_array().unwrap()).unwrap(), "x");
    }

    #[test]
    fn the_size_of_a_cell_is_limited() {
        let mut cells = Cell { id: "i".repeat(9_999), content: "字".repeat(1_000_000), ..Cell::default() };
        cells.metadata.section_id = Some("s".repeat(9_999));
        cells.metadata.extra = [("x".to_owned(), json!(vec!["y"; 9_999]))].into_iter().collect();
        cells.outputs = vec![json!({"output_type": "stream", "text": vec!["z\n"; 3_000]}); 30];
        assert!(size(&cell(&cells)) < MAX_CONTENT_BYTES + MAX_OUTPUTS * (2 * MAX_OUTPUT_BYTES) + 2_000);
    }

    #[test]
    fn variables_are_limited_and_large_values_are_described() {
        let all = [
            ("a", json!("x".repeat(9_999))),
            ("b", json!(vec![1; 9_999])),
            ("c", json!({"k": "v".repeat(9_999)})),
            ("d", json!(7)),
        ];
        let kept = variables(all.into_iter().map(|(name, value)| (name.to_owned(), value)), 3_000);
        assert_eq!(kept["a"].as_str().unwrap().len(), MAX_VARIABLE_BYTES);
        assert_eq!((&kept["b"], &kept["c"], &kept["d"]), (&json!("[9999 items]"), &json!("{1 fields}"), &json!(7)));
        let many = (0..10_000).map(|number| (format!("v{number}"), json!("word")));
        assert!(size(&Value::Object(variables(many, 3_000))) <= 3_000);
    }
}
