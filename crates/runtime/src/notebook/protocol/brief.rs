//! What is cut so that a payload stays within a fixed window: texts, lists, variables, cells and what they gave.

use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;

/// The most bytes of the content of one cell.
pub const MOST_CONTENT_BYTES: usize = 4_000;

/// The most bytes of the text of one output.
pub const MOST_OUTPUT_BYTES: usize = 1_000;

/// The most outputs of one cell: the last ones, which is where an error stands.
pub const MOST_OUTPUTS: usize = 5;

/// The most bytes of one text of a cell's metadata, and of an id.
pub const MOST_NAME_BYTES: usize = 200;

/// The most bytes of one variable.
pub const MOST_VARIABLE_BYTES: usize = 2_000;

/// What stands for a text that was cut.
const MORE: &str = "…";

/// How many bytes a value takes as JSON.
pub fn size(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}

/// `text`, cut to at most `most` bytes at the end of a character.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(most.saturating_sub(MORE.len()))).unwrap_or_default();
    format!("{kept}{MORE}")
}

/// The last of `items` that fit into `most` bytes together, each cut to [`MOST_NAME_BYTES`] times `wide`.
pub fn last<'a>(items: impl DoubleEndedIterator<Item = &'a String>, wide: usize, most: usize) -> Vec<Value> {
    let mut kept = within(items.rev().map(|item| Value::from(cut(item, MOST_NAME_BYTES * wide))), most);
    kept.reverse();
    kept
}

/// The first of `items` that fit into `most` bytes together, each cut as of [`last`].
pub fn first<'a>(items: impl Iterator<Item = &'a String>, wide: usize, most: usize) -> Vec<Value> {
    within(items.map(|item| Value::from(cut(item, MOST_NAME_BYTES * wide))), most)
}

/// As many as fit into `most` bytes together.
pub fn within(items: impl Iterator<Item = Value>, most: usize) -> Vec<Value> {
    let mut left = most;
    items
        .map_while(|item| {
            left = left.checked_sub(size(&item) + 1)?;
            Some(item)
        })
        .collect()
}

/// Variables within `most` bytes together. A large text is cut; another value that is too large is told by what it is.
pub fn variables(all: impl Iterator<Item = (String, Value)>, most: usize) -> Map<String, Value> {
    let mut left = most;
    let mut kept = Map::new();
    for (name, value) in all {
        let value = match value {
            Value::String(text) => Value::String(cut(&text, MOST_VARIABLE_BYTES)),
            value if size(&value) <= MOST_VARIABLE_BYTES => value,
            Value::Array(items) => Value::String(format!("[{} items]", items.len())),
            Value::Object(fields) => Value::String(format!("{{{} fields}}", fields.len())),
            other => other,
        };
        let Some(rest) = left.checked_sub(size(&value) + name.len() + 4) else { continue };
        left = rest;
        kept.insert(name, value);
    }
    kept
}

/// A cell, as it is sent.
pub fn cell(cell: &Cell) -> Value {
    let mut sent = json!({
        "id": cut(&cell.id, MOST_NAME_BYTES),
        "type": cell.kind.name(),
        "content": cut(&cell.content, MOST_CONTENT_BYTES),
    });
    let Some(fields) = sent.as_object_mut() else { return sent };
    let metadata = metadata(cell);
    if !metadata.is_empty() {
        fields.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if !cell.outputs.is_empty() {
        let skipped = cell.outputs.len().saturating_sub(MOST_OUTPUTS);
        let outputs: Vec<Value> = cell.outputs.iter().skip(skipped).map(output).collect();
        fields.insert("outputs".to_owned(), Value::Array(outputs));
    }
    sent
}

/// What stands beside the text of a cell. What is thought stands in the cell already.
fn metadata(cell: &Cell) -> Map<String, Value> {
    const TWICE: [&str; 3] = ["thinking_text", "custom_text", "text_array"];
    let Ok(Value::Object(all)) = serde_json::to_value(&cell.metadata) else { return Map::new() };
    let kept = all.into_iter().filter(|(name, _)| !TWICE.contains(&name.as_str()));
    kept.filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, Value::String(cut(&text, MOST_NAME_BYTES)))),
        value => (size(&value) <= MOST_NAME_BYTES).then_some((name, value)),
    })
    .collect()
}

/// An output of nbformat 4.5, with its text and without pictures and tracebacks.
fn output(output: &Value) -> Value {
    let text = |value: Option<&Value>| cut(&joined(value), MOST_OUTPUT_BYTES);
    let kind = output.get("output_type").and_then(Value::as_str).unwrap_or("display_data");
    match kind {
        "stream" => json!({"output_type": kind, "text": text(output.get("text"))}),
        "error" => json!({
            "output_type": kind,
            "ename": cut(&joined(output.get("ename")), MOST_NAME_BYTES),
            "evalue": text(output.get("evalue")),
        }),
        _ => {
            let plain = text(output.pointer("/data/text~1plain"));
            json!({"output_type": cut(kind, MOST_NAME_BYTES), "data": {"text/plain": plain}})
        }
    }
}

/// A text of nbformat, which may be a list of lines. No more of it than is needed.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => cut(text, MOST_OUTPUT_BYTES + MORE.len()),
        Some(Value::Array(lines)) => {
            let mut whole = String::new();
            for line in lines.iter().filter_map(Value::as_str) {
                whole += &cut(line, MOST_OUTPUT_BYTES + MORE.len());
                if whole.len() > MOST_OUTPUT_BYTES {
                    break;
                }
            }
            whole
        }
        _ => String::new(),
    }
}

/// The text of the last of `outputs`, as they are sent: what the last code gave.
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
    fn outputs_keep_their_words_and_lose_pictures_and_tracebacks() {
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
    fn a_cell_has_a_largest_size_whatever_is_in_it() {
        let mut cells = Cell { id: "i".repeat(9_999), content: "字".repeat(1_000_000), ..Cell::default() };
        cells.metadata.section_id = Some("s".repeat(9_999));
        cells.metadata.extra = [("x".to_owned(), json!(vec!["y"; 9_999]))].into_iter().collect();
        cells.outputs = vec![json!({"output_type": "stream", "text": vec!["z\n"; 3_000]}); 30];
        assert!(size(&cell(&cells)) < MOST_CONTENT_BYTES + MOST_OUTPUTS * (2 * MOST_OUTPUT_BYTES) + 2_000);
    }

    #[test]
    fn variables_fit_and_large_values_are_told_by_what_they_are() {
        let all = [
            ("a", json!("x".repeat(9_999))),
            ("b", json!(vec![1; 9_999])),
            ("c", json!({"k": "v".repeat(9_999)})),
            ("d", json!(7)),
        ];
        let kept = variables(all.into_iter().map(|(name, value)| (name.to_owned(), value)), 3_000);
        assert_eq!(kept["a"].as_str().unwrap().len(), MOST_VARIABLE_BYTES);
        assert_eq!((&kept["b"], &kept["c"], &kept["d"]), (&json!("[9999 items]"), &json!("{1 fields}"), &json!(7)));
        let many = (0..10_000).map(|number| (format!("v{number}"), json!("word")));
        assert!(size(&Value::Object(variables(many, 3_000))) <= 3_000);
    }
}
