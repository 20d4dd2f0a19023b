//! Recognizes text of a request that a server repeats in the message of an error: it may be text of a person, which error messages must
//! not contain.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::request::ModelRequest;

/// How many letters and digits in a row must be those of the request.
const MIN_RUN: usize = 12;

/// The same for a run without ASCII, such as Chinese, in which a character says more.
const MIN_WIDE_RUN: usize = 6;

/// The length in characters from which a complete answer or value is recognized, although it is shorter than a run.
const MIN_WHOLE: usize = 4;
const MIN_WIDE_WHOLE: usize = 2;

/// Whether the message of a server repeats text of the request.
pub(crate) fn repeats_request(message: &str, request: &ModelRequest) -> bool {
    let said = letters(&unescaped(message));
    let contents = || request.messages.iter().map(|message| message.content.as_str());
    contents().any(|content| shares_run(&said, &letters(content))) || {
        let inputs = request.task.inputs.iter().map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let values = contents().map(str::to_owned).chain(request.task.answer.clone()).chain(inputs);
        let message = unescaped(message).to_lowercase();
        values.into_iter().any(|value| contains_whole(&message, &value))
    }
}

/// The letters and digits of a text. Servers change spaces, quotes and case.
fn letters(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn shares_run(one: &[char], other: &[char]) -> bool {
    let is_wide = |run: &&[char]| run.iter().all(|c| !c.is_ascii());
    let long: HashSet<&[char]> = one.windows(MIN_RUN).collect();
    let wide: HashSet<&[char]> = one.windows(MIN_WIDE_RUN).filter(is_wide).collect();
    other.windows(MIN_RUN).any(|run| long.contains(run))
        || other.windows(MIN_WIDE_RUN).filter(is_wide).any(|run| wide.contains(run))
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
        request.task.inputs = vec![("phone".into(), json!(5_551_234)), ("name".into(), json!("小明"))];
        request
    }

    #[test]
    fn a_message_that_repeats_the_request_is_recognized() {
        for message in [
            "invalid input: my dog DIED on monday",
            "bad: [{'content': 'said:\\\\n\\\\\"My dog\\\\ndied on\\\\tMonday'}]",
            "无法处理：我的狗昨天走丢",
            "cannot read \\u6211\\u7684\\u72d7\\u6628\\u5929\\u8d70",
            "the value 5551234 is too large",
            "“小明” is not allowed",
        ] {
            assert!(repeats_request(message, &request()), "{message}");
        }
        for message in [
            "Incorrect API key provided",
            "the model `gpt-9` does not exist",
            "15551234567 requests",
            "dog",
            "",
            "\\u12",
        ] {
            assert!(!repeats_request(message, &request()), "{message}");
        }
    }
}
