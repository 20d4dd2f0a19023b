//! Recognizes text of a request that a server repeats in the message of an error: it may be text of a person, which error messages must
//! not contain.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::request::ModelRequest;

/// How many letters and digits in a row must be those of the request.
const MIN_RUN: usize = 12;

/// The same for a run without ASCII, such as Chinese, in which a character says more.
const MIN_WIDE_RUN: usize = 6;

/// The length in characters from which a complete answer or value is recognized, although it is shorter than a run.
const MIN_WHOLE: usize = 4;
const MIN_WIDE_WHOLE: usize = 2;

/// The message of a server without the text of the request that it repeats, in whose place is `…`. `None` if it repeats nothing; empty if
/// it contains a whole answer or value, because what is beside that may belong to it.
pub(crate) fn without_request(message: &str, request: &ModelRequest) -> Option<String> {
    let message = unescaped(message);
    let contents = || request.messages.iter().map(|message| message.content.as_str());
    let inputs = request.task.inputs.iter().filter_map(|(_, value)| match value {
        Value::String(text) => Some(text.clone()),
        // Every other message contains `true` or `null`.
        Value::Null | Value::Bool(_) => None,
        other => Some(other.to_string()),
    });
    let values = contents().map(str::to_owned).chain(request.task.answer.clone()).chain(inputs);
    let lowercase = message.to_lowercase();
    if values.into_iter().any(|value| contains_whole(&lowercase, &value)) {
        return Some(String::new());
    }
    let repeated = repeated_ranges(&message, contents());
    let (first, _) = repeated.first()?;
    let mut rest = message.get(..*first).unwrap_or_default().to_owned();
    for (index, (_, end)) in repeated.iter().enumerate() {
        let next = repeated.get(index + 1).map_or(message.len(), |(start, _)| *start);
        rest.push('…');
        rest.push_str(message.get(*end..next).unwrap_or_default());
    }
    Some(if rest.chars().any(char::is_alphanumeric) { rest } else { String::new() })
}

/// A letter in small form, with the bytes of the character that it is from.
type Letter = (char, usize, usize);

/// The letters and digits of a text. Servers change spaces, quotes and case.
fn letters(text: &str) -> Vec<Letter> {
    let letters = text.char_indices().filter(|(_, c)| c.is_alphanumeric());
    letters.flat_map(|(at, c)| c.to_lowercase().map(move |small| (small, at, at + c.len_utf8()))).collect()
}

/// The byte ranges of a message that are long runs of one of these texts, in order.
fn repeated_ranges<'a>(message: &str, texts: impl Iterator<Item = &'a str>) -> Vec<(usize, usize)> {
    let said = letters(message);
    let small: Vec<char> = said.iter().map(|(c, ..)| *c).collect();
    let mut runs: HashMap<&[char], Vec<usize>> = HashMap::new();
    let is_wide = |run: &[char]| run.iter().all(|c| !c.is_ascii());
    for (length, is_run) in [(MIN_RUN, true), (MIN_WIDE_RUN, false)] {
        for (at, run) in small.windows(length).enumerate().filter(|(_, run)| is_run || is_wide(run)) {
            runs.entry(run).or_default().push(at);
        }
    }
    let mut is_repeated = vec![false; small.len()];
    for text in texts {
        let text: Vec<char> = letters(text).into_iter().map(|(c, ..)| c).collect();
        for run in text.windows(MIN_RUN).chain(text.windows(MIN_WIDE_RUN)) {
            for at in runs.get(run).into_iter().flatten() {
                is_repeated.iter_mut().skip(*at).take(run.len()).for_each(|letter| *letter = true);
            }
        }
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut was_repeated = false;
    for ((_, start, end), repeated) in said.into_iter().zip(is_repeated) {
        match ranges.last_mut().filter(|_| repeated && was_repeated) {
            Some(last) => last.1 = end,
            None if repeated => ranges.push((start, end)),
            None => {}
        }
        was_repeated = repeated;
    }
    ranges
}

/// Whether a message in small letters contains a whole value, not only as a part of a word.
fn contains_whole(message: &str, value: &str) -> bool {
    let value = value.trim().to_lowercase();
    let wide = value.chars().filter(|c| !c.is_ascii() && c.is_alphanumeric()).count();
    if value.chars().count() < MIN_WHOLE && wide < MIN_WIDE_WHOLE {
        return false;
    }
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    message.match_indices(value.as_str()).any(|(start, found)| {
        let before = message.get(..start).and_then(|before| before.chars().next_back());
        let after = message.get(start + found.len()..).and_then(|after| after.chars().next());
        !is_part(before) && !is_part(after)
    })
}

/// The text with its escape sequences decoded, as far as they are about letters and spaces.
fn unescaped(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        decoded.push_str(before);
        let code = after.strip_prefix('u').and_then(|after| after.get(..4));
        let escaped = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        rest = match (escaped, after.strip_prefix(['n', 'r', 't'])) {
            (Some(c), _) => {
                decoded.push(c);
                after.get(5..).unwrap_or_default()
            }
            (None, Some(after)) => {
                decoded.push(' ');
                after
            }
            (None, None) => after,
        };
    }
    decoded + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{ChatMessage, Role};
    use serde_json::json;

    fn request() -> ModelRequest {
        let prompt = "You are kind.\nThe person said: \"My dog died on Monday.\"\n她说：我的狗昨天走丢了。";
        let mut request = ModelRequest {
            messages: vec![ChatMessage { role: Role::User, content: prompt.into() }],
            ..ModelRequest::default()
        };
        request.task.answer = Some("Rex".into());
        request.task.inputs =
            vec![("phone".into(), json!(5_551_234)), ("name".into(), json!("小明")), ("new".into(), json!(true))];
        request
    }

    #[test]
    fn what_a_message_repeats_of_the_request_is_left_out() {
        for (message, shown) in [
            ("invalid input: my dog DIED on monday", "invalid input: …"),
            (
                "bad: [{'content': 'said:\\\\n\\\\\"My dog\\\\ndied on\\\\tMonday'}], too long",
                "bad: [{'content': '…'}], too long",
            ),
            ("无法处理：我的狗昨天走丢", "无法处理：…"),
            ("cannot read \\u6211\\u7684\\u72d7\\u6628\\u5929\\u8d70", "cannot read …"),
            ("My dog died on Monday.", ""),
            ("the value 5551234 is too large", ""),
            ("“小明” is not allowed", ""),
        ] {
            assert_eq!(without_request(message, &request()).as_deref(), Some(shown), "{message}");
        }
        for message in [
            "Incorrect API key provided",
            "the model `gpt-9` does not exist",
            "15551234567 requests",
            "must be true",
            "dog",
            "",
            "\\u12",
        ] {
            assert_eq!(without_request(message, &request()), None, "{message}");
        }
    }
}
