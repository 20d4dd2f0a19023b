//! Parses an object that is encoded as a JSON string: `"{\"a\": 1}"`, with or without the outer quotes.

use serde_json::{Map, Value};

pub(super) fn starts(text: &str) -> bool {
    let inside = text.strip_prefix('"').unwrap_or(text);
    let Some(inside) = without_space(inside).strip_prefix('{') else { return false };
    without_space(inside).starts_with("\\\"")
}

/// The object at the start of `text`, if it is encoded twice and complete.
pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
    if !starts(text) {
        return None;
    }
    let inside = if text.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
        stream.next()?.ok()?
    } else {
        let end = text.rfind('}')?;
        let body = text.get(..=end)?;
        // Line ends between tokens may be unescaped. Inside strings they are invalid and are not removed.
        let body = body.replace('\r', "\\r").replace('\n', "\\n");
        serde_json::from_str::<String>(&format!("\"{body}\"")).ok()?
    };
    serde_json::from_str(inside.trim()).ok()
}

/// `text` without leading white space, which may be written as escapes.
fn without_space(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start();
        let stripped = ["\\n", "\\r", "\\t"].iter().find_map(|escape| trimmed.strip_prefix(escape));
        match stripped {
            Some(stripped) => rest = stripped,
            None => return trimmed,
        }
    }
}
