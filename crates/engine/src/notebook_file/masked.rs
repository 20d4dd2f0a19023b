//! Cells without sensitive values (docs/language.md "Variables"), before any form of a file sees them.

use bcc_lang::value::mask::Masker;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::export::output::join;

/// Fields of an output that are no words of anybody.
const OWN: [&str; 3] = ["output_type", "name", "execution_count"];

/// A picture is letters of base64, among which a short value would be found that does not stand there.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "application/pdf"];

/// Takes sensitive values out of everything that a cell shows. Ids, numbers and counts stay.
pub fn masked(mut cell: Cell, masker: &Masker) -> Cell {
    for output in &mut cell.outputs {
        join(output);
        for (name, part) in
            output.as_object_mut().into_iter().flatten().filter(|(name, _)| !OWN.contains(&name.as_str()))
        {
            match part.as_object_mut().filter(|_| name == "data") {
                // What code shows may have any keys, also those that outputs have.
                Some(data) => {
                    let readable = data.iter_mut().filter(|(mime, _)| !PICTURES.contains(&mime.as_str()));
                    readable.for_each(|(_, value)| masker.value(value, &[]));
                }
                None => masker.value(part, &[]),
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
    for value in metadata.extra.values_mut() {
        masker.value(value, &[]);
    }
    cell
}

/// [`masked`] for a text that may be there.
pub fn masked_text(text: Option<&str>, masker: &Masker) -> Option<String> {
    text.map(|text| masker.text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::notebook::cell::Metadata;
    use serde_json::{Value, json};

    #[test]
    fn a_sensitive_value_is_masked_wherever_a_cell_shows_it_and_pictures_stay_whole() {
        let masker = Masker::new(&[json!("me"), json!("张三\n李四"), json!(1234)]);
        let cell = Cell {
            id: "me".into(),
            content: "print('张三')".into(),
            metadata: Metadata {
                thinking_text: Some("about me".into()),
                agent_name: Some("me".into()),
                custom_text: Some("me".into()),
                text_array: vec!["me".into()],
                extra: json!({ "a": ["me"] }).as_object().unwrap().clone(),
                ..Metadata::default()
            },
            outputs: vec![
                json!({ "output_type": "stream", "name": "stdout", "text": ["张", "三 1234\n"] }),
                json!({ "output_type": "display_data", "data": { "image/png": "aamebb", "text/html": "<b>me</b>", "application/json": { "name": [1234] } }, "metadata": {} }),
                json!({ "output_type": "error", "ename": "E", "evalue": "me", "traceback": ["a", "李四"] }),
            ],
            ..Cell::default()
        };
        let cell = masked(cell, &masker);
        let expected = json!({
            "number": 0, "id": "me", "type": "markdown", "content": "print('***')",
            "metadata": { "thinking_text": "about ***", "agent_name": "***", "custom_text": "***", "text_array": ["***"], "extra": { "a": ["***"] } },
            "outputs": [
                { "output_type": "stream", "name": "stdout", "text": "*** ***\n" },
                { "output_type": "display_data", "data": { "image/png": "aamebb", "text/html": "<b>***</b>", "application/json": { "name": ["***"] } }, "metadata": {} },
                { "output_type": "error", "ename": "E", "evalue": "***", "traceback": ["a", "***"] },
            ],
        });
        let shown: Value = serde_json::to_value(&cell).unwrap();
        assert_eq!(shown, expected);
    }
}
