//! An object that stands inside a JSON text: `"{\"a\": 1}"`, or the same without its outer quotes.

use serde_json::{Map, Value};

pub(super) fn begins(text: &str) -> bool {
    let inside = text.strip_prefix('"').unwrap_or(text);
    let Some(inside) = without_space(inside).strip_prefix('{') else { return false };
    without_space(inside).starts_with("\\\"")
}

/// The object that `text` begins with, when it is one that was encoded twice and is whole.
pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
    if !begins(text) {
        return None;
    }
    let inside = if text.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
        stream.next()?.ok()?
    } else {
        let end = text.rfind('}')?;
        let body = text.get(..=end)?;
        // Line ends between its tokens may be real ones. Inside a text they are no JSON, and nothing is taken out of a text.
        let body = body.replace('\r', "\\r").replace('\n', "\\n");
        serde_json::from_str::<String>(&format!("\"{body}\"")).ok()?
    };
    serde_json::from_str(inside.trim()).ok()
}

/// `text` without the white space before it, be it written as escapes.
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
