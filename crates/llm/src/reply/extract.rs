//! Finds the object of the reply in a text with reasoning, fenced blocks and prose. Every step takes linear time.
//!
//! An object is a candidate only if it has a field of the reply and stands on its own. If anything in the text suggests that it is an
//! example, or a part of something larger that cannot be read, nothing is returned: the rest would be lost without an error.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::digits::Digits;
use memchr::memchr;
use serde_json::{Map, Value};

use crate::reply::out_of_range::quoted;
use crate::reply::reasoning::{Marker, after_reasoning, find_ignoring_case, first_marker};
use crate::reply::surroundings::{self, is_mark};

/// The maximum number of braces in the prose that are skipped.
const MAX_SKIPPED: usize = 64;

/// The maximum number of unclosed braces in the prose. Each requires a scan of the rest of the text.
const MAX_UNCLOSED_BRACES: usize = 4;

/// Returns the only object after the reasoning that has one of the fields `own`, wherever it stands: in a fenced block or in the
/// prose. If `own` is empty, every object qualifies.
///
/// # Errors
/// There is none; there are two that differ; it is part of something larger; an object that may be the reply does not parse (with its
/// error and byte position, never its text).
pub fn object(text: &str, own: &[&str]) -> Result<(Map<String, Value>, Option<Digits>), Message> {
    let reply = after_reasoning(text);
    // Positions are relative to the complete text.
    let skipped = text.len() - reply.len();
    if reply.is_empty() && skipped > 0 {
        return Err(Message::word("the text ends in the middle of its reasoning"));
    }
    let mut search = Search { own, prose: String::new(), found: None, abandoned: false, drafts_end: 0 };
    search.run(reply, skipped)?;
    let Some(object) = search.found else { return Err(Message::word("there is no JSON object in the text")) };
    // What closes the draft would show that the object is inside it.
    let is_inside = search.abandoned && search.prose.contains('}');
    match surroundings::contradiction(&search.prose, own).or(is_inside.then_some("the object is inside a text")) {
        Some(reason) => Err(Message::word(reason)),
        None => Ok(object),
    }
}

struct Search<'a> {
    own: &'a [&'a str],
    /// The text outside the objects, with [`surroundings::OBJECT`] in place of each object that parses.
    prose: String,
    found: Option<(Map<String, Value>, Option<Digits>)>,
    /// Whether a draft before the object was given up.
    abandoned: bool,
    /// The end of the reasoning after the object. What precedes it is judged as prose, because a tag inside a damaged text looks the
    /// same, but an object in it is a draft.
    drafts_end: usize,
}

impl Search<'_> {
    fn run(&mut self, text: &str, skipped: usize) -> Result<(), Message> {
        let (mut braces, mut unclosed) = (0, 0);
        let mut at = 0;
        while let Some(start) = self.next_brace(text, &mut at) {
            braces += 1;
            let inside = tail(text, start + 1).trim_start();
            let quoted = inside.starts_with(['"', '}']);
            match object_at(text, start) {
                Ok((_, end)) if start < self.drafts_end => {
                    self.prose.push(surroundings::OBJECT);
                    at = end;
                    continue;
                }
                Ok((object, end)) => {
                    self.take(object, text.get(start..end).unwrap_or_default())?;
                    at = end;
                    continue;
                }
                // `{{"a": 1}}`: doubled braces, as templates write them.
                Err(_) if inside.starts_with('{') && braces <= MAX_SKIPPED => {
                    self.prose.push('{');
                    at = start + 1;
                    continue;
                }
                Err(ObjectError { at: Some(stop), .. })
                    if quoted && self.found.is_none() && !self.abandoned && abandoned(text, start, stop).is_some() =>
                {
                    self.abandoned = true;
                    at = abandoned(text, start, stop).unwrap_or(stop);
                    continue;
                }
                Err(error) if quoted && self.may_be_the_reply(text, start) => {
                    let error = error.reason;
                    return Err(msg!("in the object at byte {}: {error}", skipped + start));
                }
                Err(_) => {}
            }
            // A brace of the prose, `{name}`, or something that is not JSON: the rest of the text is searched only outside it. After the
            // object, it may be the rest of a damaged text.
            let end = match closing_brace(text, start) {
                _ if braces > MAX_SKIPPED => None,
                Some(end) => Some(end),
                None if !quoted && unclosed < MAX_UNCLOSED_BRACES => {
                    unclosed += 1;
                    Some(start + 1)
                }
                None => None,
            };
            let Some(end) = end else { return Err(Message::word("there are too many braces that are not JSON")) };
            let skipped = text.get(start..end).unwrap_or_default();
            if self.found.is_some() || self.own.iter().any(|name| skipped.contains(name)) {
                self.prose.push_str(skipped);
            }
            at = end;
        }
        Ok(())
    }

    /// The next brace outside reasoning; the prose before it is kept. `None` at the end.
    fn next_brace(&mut self, text: &str, at: &mut usize) -> Option<usize> {
        loop {
            let rest = tail(text, *at);
            let brace = memchr(b'{', rest.as_bytes());
            let before = rest.get(..brace.unwrap_or(rest.len())).unwrap_or_default();
            if *at >= self.drafts_end
                && let Some((start, end, Marker::Open(close))) = first_marker(before)
            {
                self.prose.push_str(before.get(..start).unwrap_or_default());
                let reasoning_end = match find_ignoring_case(tail(rest, end), close) {
                    Some(found) => *at + end + found + close.len(),
                    None => text.len(),
                };
                if self.found.is_some() {
                    self.drafts_end = reasoning_end;
                    *at += end;
                } else {
                    *at = reasoning_end;
                }
                continue;
            }
            self.prose.push_str(before);
            *at += before.len();
            return brace.map(|_| *at);
        }
    }

    fn take(&mut self, object: Map<String, Value>, json: &str) -> Result<(), Message> {
        self.prose.push(surroundings::OBJECT);
        if !is_reply(&object, self.own) {
            return Ok(());
        }
        match &self.found {
            Some((found, _)) if *found != object => {
                Err(Message::word("there are several objects, and their values differ"))
            }
            Some(_) => Ok(()),
            None => {
                self.found = Some((object, Digits::of_json(json)));
                Ok(())
            }
        }
    }

    /// Whether the invalid object at `start` may be the reply or contain it: it does not end, or it mentions a field of the reply.
    fn may_be_the_reply(&self, text: &str, start: usize) -> bool {
        let Some(end) = closing_brace(text, start) else { return true };
        let inside = text.get(start..end).unwrap_or_default();
        self.own.is_empty() || self.own.iter().any(|name| inside.contains(name))
    }
}

/// Whether `object` has one of the fields of the reply, `own`; if there are none, every object qualifies.
pub(crate) fn is_reply(object: &Map<String, Value>, own: &[&str]) -> bool {
    own.is_empty() || own.iter().any(|name| object.contains_key(*name))
}

/// Whether the object at `start` is complete and contains `position`, which is then inside one of its strings.
pub(crate) fn object_spans(text: &str, start: usize, position: usize) -> bool {
    start < position && matches!(object_at(text, start), Ok((_, end)) if end > position)
}

/// Whether a complete object starts at `start`.
pub(crate) fn starts_object(text: &str, start: usize) -> bool {
    object_at(text, start).is_ok()
}

struct ObjectError {
    reason: Message,
    /// Where the text stops being JSON.
    at: Option<usize>,
}

fn object_at(text: &str, start: usize) -> Result<(Map<String, Value>, usize), ObjectError> {
    let text_of_object = tail(text, start);
    let mut stream = serde_json::Deserializer::from_str(text_of_object).into_iter();
    match stream.next() {
        Some(Ok(object)) => Ok((object, start + stream.byte_offset())),
        Some(Err(error)) => {
            let complete = closing_brace(text, start).and_then(|end| Some((quoted(text.get(start..end)?)?, end)));
            if let Some((json, end)) = complete
                && let Ok(object) = serde_json::from_str(&json)
            {
                return Ok((object, end));
            }
            let line_start = match error.line().checked_sub(2) {
                Some(line) => memchr::memchr_iter(b'\n', text_of_object.as_bytes()).nth(line).map(|end| end + 1),
                None => Some(0),
            };
            let at = line_start.map(|line| start + line + error.column().saturating_sub(1));
            Err(ObjectError { reason: error.to_message(), at })
        }
        None => Err(ObjectError { reason: Message::word("the text is empty"), at: None }),
    }
}

/// The fence at which a draft ends that was given up: the object at `start`, which stops being JSON at `stop`, outside its strings,
/// and is followed only by words up to a fence at the start of a line.
fn abandoned(text: &str, start: usize, stop: usize) -> Option<usize> {
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.get(start..stop)?.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    let rest = tail(text, stop);
    let fence = rest.find("```")?;
    let between = rest.get(..fence)?;
    let starts_line = text.get(..stop + fence)?.trim_end_matches([' ', '\t']).ends_with('\n');
    let is_plain = !between.contains(|c: char| is_mark(c) || "{}[],:".contains(c));
    (!in_string && starts_line && is_plain).then_some(stop + fence)
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

/// `text` from `at` on; empty beyond its end.
pub(crate) fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OWN: &[&str] = &["a", "content"];

    fn found(text: &str) -> Value {
        object(text, OWN).map_or(Value::Null, |(object, _)| Value::Object(object))
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
            ("```json\n{\"a\":\n```\n```json\n{\"a\":1}\n```", "the first block is cut off"),
            ("```json\n[1]\n```\n```json\n{\"a\":1}\n```", "the first block is a list"),
            ("例如 {\"b\":2}：\n```json\n{\"a\":1}\n```", "a block after other prose"),
            ("好的，结果是{\"a\":1}。", "prose"),
            ("用 {name} 称呼，{\"a\":1}", "a placeholder in the prose"),
            ("{name {\"a\":1}", "a brace that never closes"),
            ("{{\"a\":1}}", "doubled braces"),
            ("好的 {\"content\":\"x\"：\n```json\n{\"a\":1}\n```", "after a draft that was given up"),
            ("{\"b\":2,} {\"a\":1}", "something else that is not JSON before it"),
            ("{\"a\":1} {\"b\":2}", "the only one with a field of the reply"),
            ("{\"a\":1} 即 {\"a\": 1}", "twice the same"),
            ("格式：{\"key\":\"value\"}\n{\"a\":1}", "after an example without fields of the reply"),
            ("<thinking>{\"a\":2}</thinking>{\"a\":1}", "after a reasoning with another tag"),
            ("{\"a\":1}\n<reasoning>{\"a\":2}</reasoning>", "before a late reasoning with a draft"),
            ("<|channel|>analysis<|message|>{\"a\":2}<|end|><|channel|>final<|message|>{\"a\":1}", "in a channel"),
            ("<think>{\"b\":2}</think>{\"a\":1}", "after the reasoning"),
            ("<THINK>\n```json\n{\"b\":2}\n```\n</Think>\n\n{\"a\":1}", "after reasoning with a block in it"),
            ("<think>x</think> <think>{\"b\":2}</think>\n```\n{\"a\":1}```", "after two reasonings"),
            ("好的<think>{\"b\":2}</think>{\"a\":1}", "after prose and reasoning"),
            ("先想想 {\"b\":2} 然后\n</think>\n{\"a\":1}", "after reasoning whose opening tag is lost"),
            ("{\"a\":1}<think>{\"b\":2}</think>", "before a late reasoning"),
            ("{\"a\":1}\n<think>{name}, or {\"a\":2}?", "before a late reasoning that does not end"),
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
            // A block or an object inside a text of a larger object.
            "{\"content\": \"You wrote:\n```json\n{\"content\": \"Ignore it.\", \"a\": \"YES\"}\n```\nIs that so?\", \"a\": \"NO\"}",
            "{\"content\": \"You wrote: {\"content\": \"x\", \"a\": 10}\", \"a\": 1}",
            "{\"content\": 'You wrote:\n```json\n{\"a\": 1}\n```', \"a\": 2}",
            "{\"content\": You wrote\n```json\n{\"a\": 1}\n```\n}",
            "{content: 'You wrote {\"content\": \"x\"}', a: 1}",
            "\"content\": \"You wrote {\"content\": \"x\"} …\", \"a\": 1}",
            "{'content': 'x', 'metadata': {\"a\": 1}",
            "content: You wrote {\"content\": \"x\"}\na: 1",
            "reply(content=\"You wrote {\"content\": \"x\"}\", a=1)",
            "<content>You wrote {\"content\": \"x\"}</content>",
            // A part of an object that cannot be read whole.
            "{\"content\":\"a\",\"items\":[{\"k\":1}},{\"content\":\"WRONG\",\"a\":1}]}",
            "{\"a\":\"value\"}, \"key2\" \"value2\"}",
            "\"metadata\": {\"a\": 1}}",
            "{\"k\":1}},{\"content\":\"WRONG\"}]}",
            "{\"a\":2,} {\"a\":1}",
            // A text with a quote that is not escaped, which ends the object too early; its rest looks like reasoning or like prose.
            "{\"content\":\"one\"}<think> two\",\"b\":1}",
            "{\"content\":\"one\"} two [THINK]\",\"b\":{\"c\":[\"three\"]}}",
            "{\"content\":\"\"}<think>\",\"b\":\"</think>\"}",
            "{\"content\":\"one\"}<think>two</think>three\",\"b\":[1]}",
            "{\"content\":\"one\"}{\",\"b\":{\"c\":[\"d\\\"}{\"]}}",
            // An example and the reply, or only an example.
            "例如 {\"content\": \"…\"}：{\"content\": \"您好\"}",
            "```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```",
            "格式：{\"content\": \"…\"}\n{\"content\": \"您好",
            "[{\"a\":1},{\"a\":2}]",
            "例如 {\"key\": \"value\"}。",
        ];
        for text in texts {
            assert_eq!(found(text), Value::Null, "{text}");
        }
    }

    #[test]
    fn the_error_is_that_of_the_first_object_that_does_not_parse() {
        assert_eq!(
            object("<think></think>ab {\"a\":}", OWN).unwrap_err(),
            "in the object at byte 18: expected value at line 1 column 6"
        );
        assert_eq!(object("nothing here", OWN).unwrap_err(), "there is no JSON object in the text");
        assert_eq!(object("<think>so", OWN).unwrap_err(), "the text ends in the middle of its reasoning");
    }

    #[test]
    fn large_hostile_texts_are_read_in_linear_time() {
        const BYTES: usize = 1 << 20;
        // In quadratic time each of these would take hours and exceed the time limit of the test suite.
        let units = "{|{a|{\"|{\"a\":|{\"a\":[|```|```{|```\n{\"a\":|<think>|</think>|<|{ |{}x{";
        for unit in units.split('|') {
            let text = unit.repeat(BYTES / unit.len());
            let _ = object(&text, OWN);
        }
        for unit in [
            "<think>",
            "<think></think>",
            "</think>",
            "<think>{",
            "<think>{}</think>",
            "{x}<think>",
            "<analysis>x{\"a\":1}",
        ] {
            let _ = object(&format!("{{\"a\":1}}{}", unit.repeat(BYTES / unit.len())), OWN);
        }
    }
}
