//! The results of tools as values: bounded, and without images and sounds.

use bcc_lang::message::message::Message;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::effects::tools::ToolOutput;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::mcp::secrets::McpSecrets;
use crate::mcp::texts::cleaned;

/// The maximum length of a name or type of a content, in characters.
const MAX_NAME: usize = 200;

/// The value of a result, of at most `max_bytes` bytes as JSON: its structured content, otherwise its texts.
///
/// # Errors
/// The text of a result that says that the call failed.
pub(crate) fn output(result: CallToolResult, max_bytes: usize, secrets: &McpSecrets) -> Result<ToolOutput, Message> {
    if result.is_error.unwrap_or(false) {
        let text = match (result.content.is_empty(), &result.structured_content) {
            (true, Some(value)) => value.to_string(),
            _ => texts(&result.content),
        };
        return Err(match secrets.error_text(&text) {
            text if text.is_empty() => "the server does not say why".into(),
            text => Message::text(text),
        });
    }
    let mut value = match result.structured_content {
        Some(value) => {
            let digits = written_digits(&value, &result.content);
            ExactValue::new(value, digits)
        }
        None => Value::String(texts(&result.content)).into(),
    };
    value.change(|value| secrets.mask_keys(value));
    Ok(bounded(value, max_bytes))
}

/// How the numbers of a structured content are written, which is known only if a text repeats it, as servers should. Otherwise an integer
/// of more than 64 bits would be another number.
fn written_digits(value: &Value, content: &[ContentBlock]) -> Option<Digits> {
    content.iter().find_map(|content| {
        let ContentBlock::Text(text) = content else { return None };
        serde_json::from_str::<Value>(&text.text).is_ok_and(|repeated| repeated == *value).then_some(())?;
        Digits::of_json(&text.text)
    })
}

/// The texts, with a short description of each content that is not one.
fn texts(content: &[ContentBlock]) -> String {
    let parts: Vec<String> = content.iter().map(text).collect();
    parts.join("\n")
}

fn text(content: &ContentBlock) -> String {
    let short = |text: &str| cleaned(text, MAX_NAME).replace('\n', " ");
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", short(&image.mime_type), decoded(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", short(&audio.mime_type), decoded(&audio.data)),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {}]\n{text}", short(uri)),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                format!("[resource {} {}, {} bytes]", short(uri), short(kind), decoded(blob))
            }
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {} ({})]", short(&link.uri), short(&link.name)),
        _ => "[content of an unknown type]".to_owned(),
    }
}

/// The number of bytes that base64 stands for.
fn decoded(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// A value that is too large becomes the beginning of its text.
fn bounded(value: ExactValue, max_bytes: usize) -> ToolOutput {
    let json = value.to_string();
    if json.len() <= max_bytes {
        return ToolOutput { value, is_truncated: false, is_cached: false };
    }
    let text = if let Value::String(text) = value.into_value() { text } else { json };
    let (mut size, mut end) = (2, 0);
    for (at, c) in text.char_indices() {
        size += encoded_size(c);
        if size > max_bytes {
            break;
        }
        end = at + c.len_utf8();
    }
    let kept = text.get(..end).unwrap_or_default().to_owned();
    ToolOutput { value: Value::String(kept).into(), is_truncated: true, is_cached: false }
}

/// The size of a character in a JSON string, in bytes.
fn encoded_size(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(result: Value, max_bytes: usize) -> Result<ToolOutput, String> {
        output(serde_json::from_value(result).unwrap(), max_bytes, &McpSecrets::default())
            .map_err(|why| why.to_string())
    }

    #[test]
    fn structured_content_comes_before_texts_and_other_contents_are_described() {
        let text = json!({ "type": "text", "text": "a" });
        let both = json!({ "content": [text], "structuredContent": { "n": 1 } });
        assert_eq!(read(both, 100).unwrap().value, json!({ "n": 1 }));
        let mixed = json!({ "content": [
            text,
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAA=" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "t" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA", "mimeType": "x/y" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c\u{202e}" },
        ] });
        let expected = "a\n[image image/png, 3 bytes]\n[audio audio/wav, 2 bytes]\n[resource file:///a]\nt\n\
                        [resource file:///b x/y, 3 bytes]\n[resource file:///c (c)]";
        assert_eq!(read(mixed, 1000).unwrap().value, json!(expected));
        assert_eq!(read(json!({ "content": [] }), 10).unwrap().value, json!(""));
    }

    #[test]
    fn numbers_keep_the_digits_of_a_text_that_repeats_the_structured_content() {
        let json = r#"{"id":12345678901234567890123,"price":1.10}"#;
        let structured: Value = serde_json::from_str(json).unwrap();
        let content = |text: &str| json!([{ "type": "text", "text": "about" }, { "type": "text", "text": text }]);
        let repeated = json!({ "content": content(json), "structuredContent": structured });
        assert_eq!(read(repeated, 100).unwrap().value.to_string(), json);
        let other = json!({ "content": content(&json.replace("1.10", "2.10")), "structuredContent": structured });
        assert_eq!(read(other, 100).unwrap().value.to_string(), structured.to_string());
    }

    #[test]
    fn an_error_is_the_text_of_the_server() {
        let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "no\u{1b} file" }] });
        assert_eq!(read(failed, 100), Err("no file".to_owned()));
        assert_eq!(read(json!({ "isError": true, "content": [] }), 100), Err("the server does not say why".to_owned()));
    }

    #[test]
    fn a_large_result_is_cut_to_the_limit_as_json() {
        for text in ["a".repeat(500), "\"\n".repeat(300), "读".repeat(300), "\u{1}".repeat(300)] {
            let found = read(json!({ "content": [{ "type": "text", "text": text }] }), 100).unwrap();
            let size = found.value.to_string().len();
            assert!(found.is_truncated && (94..=100).contains(&size), "{size} {}", found.value);
        }
        let found = read(json!({ "content": [], "structuredContent": vec![1; 500] }), 20).unwrap();
        assert_eq!((found.value.into_value(), found.is_truncated), (json!("[1,1,1,1,1,1,1,1,1"), true));
    }
}
