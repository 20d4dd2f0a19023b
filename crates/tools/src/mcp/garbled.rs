//! Messages of a program that no reader of JSON accepts: a number that is too large, half a character, other bytes than UTF-8. The
//! library ignores them, so that a call would wait for its time limit. They are replaced by errors, which end the call.

use bcc_llm::http::lines::BYTE_ORDER_MARK;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

/// Marks the errors that replace messages.
const MARK: &str = "bcc_not_json";

/// The error to read instead of a line that is not JSON and answers a request of the client.
pub(crate) fn replacement(line: &[u8]) -> Option<Vec<u8>> {
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if !text.starts_with(b"{") || serde_json::from_slice::<Value>(text).is_ok() {
        return None;
    }
    let id = answered_request(text)?;
    let error = json!({ "code": ErrorCode::PARSE_ERROR.0, "message": MARK, "data": MARK });
    Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes())
}

/// Whether this error replaces a message.
pub(crate) fn is_garbled(error: &ErrorData) -> bool {
    error.code == ErrorCode::PARSE_ERROR && error.data.as_ref().is_some_and(|data| data == MARK)
}

/// The number in the field `id` of an object that has no field `method`. The requests of the client have numbers.
fn answered_request(object: &[u8]) -> Option<u64> {
    let (mut id, mut depth, mut at) = (None, 0_usize, 0);
    while let Some(byte) = object.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(object, at);
                let value = object.get(end..).unwrap_or_default().trim_ascii_start().strip_prefix(b":");
                if let (1, Some(value)) = (depth, value) {
                    match object.get(at..end)? {
                        b"\"method\"" => return None,
                        b"\"id\"" => id = leading_number(value.trim_ascii_start()),
                        _ => {}
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    id
}

/// The position after the string that starts at `start`.
fn string_end(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match json.get(at) {
            None => return json.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn leading_number(json: &[u8]) -> Option<u64> {
    let end = json.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(json.len());
    std::str::from_utf8(json.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_are_not_json_are_replaced() {
        for (line, id) in [
            (&b"{\"id\":3,\"result\":{\"id\":4,\"v\":1e400}}"[..], Some(3)),
            (b"{\"result\":{\"id\":4,\"v\":\"\\ud83d\",\"method\":1},\"x\":\"id\", \"id\" : 3 }", Some(3)),
            (b"\xEF\xBB\xBF{\"id\":3,\"result\":\"caf\xE9 \\\" }\"}", Some(3)),
            (b"{\"id\":3,\"result\":{}}", None),
            (b"{\"id\":3,\"method\":\"ping\",\"params\":NaN}", None),
            (b"{\"id\":\"3\",\"result\":NaN}", None),
            (b"{\"result\":{\"id\":3,\"v\":NaN}}", None),
            (b"{ this is not JSON", None),
            (b"started \"id\":3", None),
            (b"", None),
        ] {
            let found = replacement(line).map(|error| serde_json::from_slice::<Value>(&error).unwrap()["id"].as_u64());
            assert_eq!(found, id.map(Some), "{}", String::from_utf8_lossy(line));
        }
    }
}
