//! Masks sensitive values in cells (docs/language.md "Variables"), before they are written in any format.

use bcc_lang::value::mask::Masker;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::export::output::join;
use bcc_runtime::program::event_masking::MEDIA_TYPES;

/// Fields of an output that are not masked, because they contain no text of people.
const EXCLUDED_FIELDS: [&str; 3] = ["output_type", "name", "execution_count"];

/// Base64 data, in which a short value could match by chance.
const BINARY_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "application/pdf"];

/// Masks sensitive values in the visible parts of a cell. Ids, numbers and counts stay.
pub fn masked(mut cell: Cell, masker: &Masker) -> Cell {
    for output in &mut cell.outputs {
        join(output);
        for (name, part) in
            output.as_object_mut().into_iter().flatten().filter(|(name, _)| !EXCLUDED_FIELDS.contains(&name.as_str()))
        {
            match part.as_object_mut().filter(|_| name == "data") {
                // Data of code can have any keys, including those of outputs.
                Some(data) => {
                    let readable = data.iter_mut().filter(|(mime, _)| !BINARY_TYPES.contains(&mime.as_str()));
                    readable.for_each(|(_, value)| masker.data(value));
                    masker.keys(data, &MEDIA_TYPES);
                }
                None => masker.data(part),
            }
        }
    }
    if masker.is_empty() {
        return cell;
    }
    cell.content = masker.text(&cell.content);
    let metadata = &mut cell.metadata;
    for text in [&mut metadata.thinking_text, &mut metadata.agent_name, &mut metadata.custom_text].into_iter().flatten()
    {
        *text = masker.text(text);
    }
    for piece in &mut metadata.text_array {
        *piece = masker.text(piece);
    }
    metadata.extra.values_mut().for_each(|value| masker.data(value));
    masker.keys(&mut metadata.extra, &[]);
    cell
}

/// An optional text with masked values.
pub fn masked_text(text: Option<&str>, masker: &Masker) -> Option<String> {
    text.map(|text| masker.text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::notebook::cell::Metadata;
    use serde_json::{Value, json};

    #[test]
    fn sensitive_values_are_masked_in_all_parts_of_a_cell_except_images() {
        let masker = Masker::new(&[json!("me").into(), json!("张三\n李四").into(), json!(1234).into()]);
        let cell = Cell {
            id: "me".into(),
            content: "print('张三')".into(),
            metadata: Metadata {
                thinking_text: Some("about me".into()),
                agent_name: Some("me".into()),
                custom_text: Some("me".into()),
                text_array: vec!["me".into()],
                extra: json!({ "a": ["me"], "of me": 1 }).as_object().unwrap().clone(),
                ..Metadata::default()
            },
            outputs: vec![
                json!({ "output_type": "stream", "name": "stdout", "text": ["张", "三 1234\n"] }),
                json!({ "output_type": "display_data", "data": { "image/png": "aamebb", "text/html": "<b>me</b>", "application/json": { "name": [1234], "1234": 1 }, "me": 1 }, "metadata": { "me": 1 } }),
                json!({ "output_type": "error", "ename": "E", "evalue": "me", "traceback": ["a", "李四"] }),
            ],
            ..Cell::default()
        };
        let cell = masked(cell, &masker);
        let expected = json!({
            "number": 0, "id": "me", "type": "markdown", "content": "print('***')",
            "metadata": { "thinking_text": "about ***", "agent_name": "***", "custom_text": "***", "text_array": ["***"], "extra": { "a": ["***"], "of ***": 1 } },
            "outputs": [
                { "output_type": "stream", "name": "stdout", "text": "*** ***\n" },
                { "output_type": "display_data", "data": { "image/png": "aamebb", "text/html": "<b>***</b>", "application/json": { "name": ["***"], "***": 1 }, "***": 1 }, "metadata": { "***": 1 } },
                { "output_type": "error", "ename": "E", "evalue": "***", "traceback": ["a", "***"] },
            ],
        });
        let shown: Value = serde_json::to_value(&cell).unwrap();
        assert_eq!(shown, expected);
    }
}
