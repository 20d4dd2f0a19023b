//! Finds the object in a text with reasoning, fenced blocks and prose. Every step takes linear time.

use bcc_lang::message::library::json_error;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use memchr::{memchr, memchr2, memmem};
use serde_json::{Map, Value};

/// The maximum number of `<think>` blocks that are skipped at the start of a text.
const MAX_THINK_BLOCKS: usize = 8;

/// The maximum number of fences that are searched for an object.
const MAX_FENCES: usize = 64;

/// The maximum number of invalid objects in the prose that are skipped.
const MAX_BROKEN_OBJECTS: usize = 64;

/// The maximum number of unclosed braces in the prose. Each requires a scan of the rest of the text.
const MAX_UNCLOSED_BRACES: usize = 4;

/// Returns the object in a fenced block, or else the first one in the prose, after the reasoning.
///
/// An object inside a truncated or malformed object is not returned: it is only a part of the reply, and the rest would be lost
/// without an error.
///
/// # Errors
/// The error and byte position of the first object that does not parse, never its text.
pub fn object(text: &str) -> Result<Map<String, Value>, Message> {
    let reply = after_thinking(text);
    // `after_thinking` returns the end of `text`; positions are relative to the complete text.
    let skipped = text.len() - reply.len();
    match fenced(reply) {
        Some(object) => Ok(object),
        None => in_prose(reply).map_err(|broken| match broken {
            Some((start, error)) => msg!("in the object at byte {}: {error}", skipped + start),
            None if skipped == text.len() && skipped > 0 => {
                Message::word("the text ends in the middle of its reasoning")
            }
            None => Message::word("there is no JSON object in the text"),
        }),
    }
}

/// The part of `text` after its reasoning; empty if the reasoning is not closed.
pub(crate) fn after_thinking(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..MAX_THINK_BLOCKS {
        let open = find_tag(rest, "<think>");
        let first_brace = memchr(b'{', rest.as_bytes());
        let close = match (open, first_brace) {
            // A tag after a brace may be part of the reply.
            (Some(open), brace) if brace.is_none_or(|brace| open < brace) => {
                let inside = tail(rest, open);
                let Some(close) = find_tag(inside, "</think>") else { return "" };
                open + close
            }
            // Some servers remove the opening tag but not the closing one.
            (None, brace) => match find_tag(rest, "</think>") {
                Some(close) if !brace.is_some_and(|brace| object_spans(rest, brace, close)) => close,
                _ => return rest,
            },
            _ => return rest,
        };
        rest = tail(rest, close + "</think>".len());
    }
    rest
}

/// Whether the object at `start` is complete and contains `position`, which is then inside one of its strings.
fn object_spans(text: &str, start: usize, position: usize) -> bool {
    start < position && matches!(object_at(text, start), Ok((_, end)) if end > position)
}

/// The first fenced block whose content is an object. A fence is at the start of a line, which is impossible inside a JSON string,
/// where line ends are escaped. The content is parsed from the fence on, so that backticks in its strings do not end it.
fn fenced(text: &str) -> Option<Map<String, Value>> {
    fenced_contents(text)
        .filter(|&start| tail(text, start).starts_with('{'))
        .find_map(|start| complete_object_at(text, start).ok())
}

pub(crate) fn fenced_contents(text: &str) -> impl Iterator<Item = usize> {
    memmem::find_iter(text.as_bytes(), "```")
        .filter(move |&fence| starts_line(text, fence))
        .take(MAX_FENCES)
        .filter_map(move |fence| content_of_fence(text, fence))
}

fn starts_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t', '\u{feff}']);
    before.is_empty() || before.ends_with('\n')
}

/// The start of the content of the fence at `fence`: after the info words and the line end, or after one info word on the same line.
fn content_of_fence(text: &str, fence: usize) -> Option<usize> {
    let after = tail(text, fence).trim_start_matches('`');
    let content = match memchr2(b'\n', b'{', after.as_bytes()) {
        Some(end) if after.as_bytes().get(end) == Some(&b'\n') => tail(after, end).trim_start(),
        Some(brace) if after.get(..brace)?.split_whitespace().nth(1).is_none() => tail(after, brace),
        _ => return None,
    };
    Some(text.len() - content.len())
}

/// The first object in the prose, or the position and error of the first one that does not parse.
fn in_prose(text: &str) -> Result<Map<String, Value>, Option<(usize, Message)>> {
    let mut broken: Option<(usize, Message)> = None;
    let (mut objects, mut unclosed) = (0, 0);
    let mut at = 0;
    while let Some(found) = memchr(b'{', tail(text, at).as_bytes()) {
        let start = at + found;
        let inside = tail(text, start + 1);
        let Some(first) = inside.trim_start().chars().next() else { break };
        if first == '{' {
            // `{{"a": 1}}`: doubled braces, as templates write them.
            at = start + 1;
            continue;
        }
        if matches!(first, '"' | '}') {
            let error = match complete_object_at(text, start) {
                Ok(object) => return Ok(object),
                Err(error) => error,
            };
            broken.get_or_insert((start, error));
            objects += 1;
            match closing_brace(text, start) {
                Some(end) if objects < MAX_BROKEN_OBJECTS => at = end,
                // Truncated: the rest of the text is inside it.
                _ => break,
            }
        } else {
            // A brace of the prose, `{name}`, or near-JSON without quotes: neither contains a reply.
            match closing_brace(text, start) {
                Some(end) => at = end,
                None if unclosed < MAX_UNCLOSED_BRACES => {
                    unclosed += 1;
                    at = start + 1;
                }
                None => break,
            }
        }
    }
    Err(broken)
}

/// The object at `start`, unless further fields follow it, which means that it is part of another object.
fn complete_object_at(text: &str, start: usize) -> Result<Map<String, Value>, Message> {
    let (object, end) = object_at(text, start)?;
    if continues_with_field(tail(text, end)) {
        Err(Message::word("more fields follow its closing brace"))
    } else {
        Ok(object)
    }
}

/// Whether `rest`, the text after an object, starts with `, "key":`.
fn continues_with_field(rest: &str) -> bool {
    const MAX_KEY_BYTES: usize = 128;
    let Some(key) = rest.trim_start().strip_prefix(',').map(str::trim_start).and_then(|rest| rest.strip_prefix('"'))
    else {
        return false;
    };
    match memchr(b'"', key.as_bytes()) {
        Some(end) if end <= MAX_KEY_BYTES => tail(key, end + 1).trim_start().starts_with(':'),
        _ => false,
    }
}

fn object_at(text: &str, start: usize) -> Result<(Map<String, Value>, usize), Message> {
    let mut stream = serde_json::Deserializer::from_str(tail(text, start)).into_iter();
    match stream.next() {
        Some(Ok(object)) => Ok((object, start + stream.byte_offset())),
        Some(Err(error)) => Err(json_error(&error)),
        None => Err(Message::word("the text is empty")),
    }
}

/// The position after the brace that closes the one at `start`, ignoring braces in strings.
pub(crate) fn closing_brace(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    for (offset, byte) in tail(text, start).bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(start + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first position of `tag` (ASCII, starts with `<`) in `text`, case-insensitive.
fn find_tag(text: &str, tag: &str) -> Option<usize> {
    memchr::memchr_iter(b'<', text.as_bytes())
        .find(|&at| text.get(at..at + tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag)))
}

/// `text` from `at` on; empty beyond its end.
fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(text: &str) -> Value {
        object(text).map_or(Value::Null, Value::Object)
    }

    #[test]
    fn the_object_is_found_wherever_models_put_it() {
        let table = [
            ("```json\n{\"a\":1}\n```", "a fenced block"),
            ("```JSON\n{\"a\":1}\n```", "info word in capitals"),
            ("```\n{\"a\":1}\n```", "no info word"),
            ("```json5 title=\"reply\"\n\n  {\"a\":1}\n```", "several info words"),
            ("```json{\"a\":1}```", "all on one line"),
            ("``` {\"a\":1} ```", "all on one line, no info word"),
            ("````json\n{\"a\":1}\n````", "four backticks"),
            ("```json\r\n{\"a\":1}\r\n```", "carriage returns"),
            ("```json\n{\"a\":1}", "a fence that is not closed"),
            ("```python\nx = 1\n```\n```json\n{\"a\":1}\n```", "the second of two blocks"),
            ("```json\n{\"a\":\n```\n```json\n{\"a\":1}\n```", "the first block is broken"),
            ("```json\n[1]\n```\n```json\n{\"a\":1}\n```", "the first block is a list"),
            ("例如 {\"b\":2}：\n```json\n{\"a\":1}\n```", "a block wins over the prose before it"),
            ("好的，结果是{\"a\":1}。", "prose"),
            ("用 {name} 称呼，{\"a\":1}", "a placeholder in the prose"),
            ("{name {\"a\":1}", "a brace that never closes"),
            ("{{\"a\":1}}", "doubled braces"),
            ("{\"b\":2,} {\"a\":1}", "a broken object before it"),
            ("{\"a\":1} {\"b\":2}", "the first of two"),
            ("<think>{\"b\":2}</think>{\"a\":1}", "after the reasoning"),
            ("<THINK>\n```json\n{\"b\":2}\n```\n</Think>\n\n{\"a\":1}", "after reasoning with a block in it"),
            ("<think>x</think> <think>{\"b\":2}</think>\n```\n{\"a\":1}```", "after two reasonings"),
            ("好的<think>{\"b\":2}</think>{\"a\":1}", "after prose and reasoning"),
            ("先想想 {\"b\":2} 然后\n</think>\n{\"a\":1}", "after reasoning whose opening tag is lost"),
            ("{\"a\":1}<think>{\"b\":2}</think>", "before a late reasoning"),
            ("[{\"a\":1}]", "inside a list"),
        ];
        for (text, case) in table {
            assert_eq!(found(text), json!({ "a": 1 }), "{case}: {text}");
        }
    }

    #[test]
    fn tags_fences_and_braces_inside_strings_are_text() {
        let inner = "a } { \\\" ```json {} ``` <think> </think> \\\\";
        for (before, after) in [("", " x"), ("好的 ", ""), ("```json\n", "\n```"), ("<think>{</think>", "")] {
            let text = format!("{before}{{\"a\":\"{inner}\"}}{after}");
            let expected = json!({ "a": "a } { \" ```json {} ``` <think> </think> \\" });
            assert_eq!(found(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_broken_object_is_never_returned() {
        let texts = [
            "{\"safety_risk\": {\"detected\": false}, \"content\": \"cut of",
            "```json\n{\"safety_risk\": {\"detected\": false}, \"content\": \"cut of",
            "{\"safety_risk\": {\"detected\": false}, \"content\": \"a\nb\"}",
            "{\"safety_risk\": {\"detected\": false}, \"content\": \"a\",}",
            "{content: \"x\", metrics: {\"a\": 1}}",
            "{'content': 'x', 'metadata': {}}",
            "<think>{\"a\":1}",
        ];
        for text in texts {
            assert_eq!(found(text), Value::Null, "{text}");
        }
    }

    #[test]
    fn the_error_is_that_of_the_first_object_that_does_not_parse() {
        assert_eq!(
            object("<think></think>ab {\"x\":}").unwrap_err(),
            "in the object at byte 18: expected value at line 1 column 6"
        );
        assert_eq!(object("nothing here").unwrap_err(), "there is no JSON object in the text");
        assert_eq!(object("<think>so").unwrap_err(), "the text ends in the middle of its reasoning");
    }

    #[test]
    fn large_hostile_texts_are_read_in_linear_time() {
        const BYTES: usize = 1 << 20;
        // In quadratic time each of these would take hours and exceed the time limit of the test suite.
        let units = "{|{a|{\"|{\"a\":|{\"a\":[|```|```{|```\n{\"a\":|<think>|</think>|<|{ |{}x{";
        for unit in units.split('|') {
            let text = unit.repeat(BYTES / unit.len());
            let _ = object(&text);
        }
    }
}
