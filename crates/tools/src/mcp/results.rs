//! The results of tools as values: bounded, and without images and sounds.

use bcc_lang::message::message::Message;
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
    let mut value = result.structured_content.unwrap_or_else(|| Value::String(texts(&result.content)));
    secrets.mask_keys(&mut value);
    Ok(bounded(value, max_bytes))
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
fn bounded(value: Value, max_bytes: usize) -> ToolOutput {
    let json = value.to_string();
    if json.len() <= max_bytes {
        return ToolOutput { value, is_truncated: false, is_cached: false };
    }
    let text = if let Value::String(text) = value { text } else { json };
    let (mut size, mut end) = (2, 0);
    for (at, c) in text.char_indices() {
        size += encoded_size(c);
        if size > max_bytes {
            break;
        }
        end = at + c.len_utf8();
    }
    let kept = text.get(..end).unwrap_or_default().to_owned();
    ToolOutput { value: Value::String(kept), is_truncated: true, is_cached: false }
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
        assert_eq!((found.value, found.is_truncated), (json!("[1,1,1,1,1,1,1,1,1"), true));
    }
}
