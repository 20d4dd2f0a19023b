//! Reads answers from standard input, one per line; for programs also as JSON objects.

use bcc_lang::message::msg;
use std::io::{BufRead, Read};

use async_trait::async_trait;
use serde::Deserialize;
use tokio::sync::mpsc::{Receiver, channel};

use crate::cli::input::{InputLine, InputSource};
use bcc_lang::template::names::MAX_VALUE_BYTES;

/// The limit on the size of an answer, in bytes: the same as for values of variables.
pub const MAX_ANSWER_BYTES: usize = MAX_VALUE_BYTES;

/// The lines of standard input. They are read on their own thread, so that signals are handled meanwhile.
pub struct InputLines {
    lines: Receiver<InputLine>,
}

#[derive(Debug, Deserialize)]
struct Sent {
    user: String,
    answer_id: Option<String>,
}

impl InputLines {
    /// Starts to read. With `json`, a line that is a JSON object with `user` is an answer with an optional `answer_id`.
    pub fn of_standard_input(json: bool) -> Self {
        // Only one line is read ahead; the others stay with the sender.
        let (send, lines) = channel(1);
        std::thread::spawn(move || {
            let mut reader = std::io::BufReader::new(std::io::stdin());
            while let Some(bytes) = read_line(&mut reader) {
                if send.blocking_send(input(bytes, json)).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }
}

#[async_trait(?Send)]
impl InputSource for InputLines {
    async fn next(&mut self) -> InputLine {
        self.lines.recv().await.unwrap_or(InputLine::End)
    }
}

/// The next line without its line end; `Err` if it is too long, and then it is skipped. `None` at the end of input.
fn read_line(reader: &mut impl BufRead) -> Option<Result<Vec<u8>, ()>> {
    let mut line = Vec::new();
    let max_bytes = MAX_ANSWER_BYTES as u64 + 2;
    let read = reader.by_ref().take(max_bytes).read_until(b'\n', &mut line).ok()?;
    if read == 0 {
        return None;
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if read as u64 == max_bytes {
        skip_line(reader);
        return Some(Err(()));
    }
    Some(if line.len() > MAX_ANSWER_BYTES { Err(()) } else { Ok(line) })
}

fn skip_line(reader: &mut impl BufRead) {
    loop {
        let Ok(buffer) = reader.fill_buf() else { return };
        if buffer.is_empty() {
            return;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return;
        }
    }
}

fn input(line: Result<Vec<u8>, ()>, json: bool) -> InputLine {
    let Ok(bytes) = line else {
        return InputLine::Unusable(msg!("an answer longer than {MAX_ANSWER_BYTES} bytes was not accepted"));
    };
    // Invalid UTF-8 is replaced, so that no answer is lost because of its encoding.
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    if json && text.trim_start().starts_with('{') {
        match serde_json::from_str::<Sent>(&text) {
            Ok(sent) => return InputLine::Answer { text: sent.user, answer_id: sent.answer_id },
            // Other JSON objects are more likely an error of a program than an answer of a person.
            Err(error) if serde_json::from_str::<serde_json::Value>(&text).is_ok() => {
                return InputLine::Unusable(msg!(
                    "a JSON line must be {{\"user\": \"…\", \"answer_id\": \"…\"}}: {error}"
                ));
            }
            // So is the start of one, from a program that was killed while it wrote.
            Err(error) if text.trim_start().trim_start_matches('{').trim_start().starts_with('"') => {
                return InputLine::Unusable(msg!(
                    "a line that starts like a JSON object is not valid JSON and was not accepted: {error}; send the whole object on one line"
                ));
            }
            Err(_) => {}
        }
    }
    InputLine::Answer { text, answer_id: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(bytes: &[u8], json: bool) -> Vec<InputLine> {
        let mut reader = std::io::BufReader::new(bytes);
        std::iter::from_fn(|| read_line(&mut reader)).map(|line| input(line, json)).collect()
    }

    fn answer(text: &str, answer_id: Option<&str>) -> InputLine {
        InputLine::Answer { text: text.into(), answer_id: answer_id.map(str::to_owned) }
    }

    #[test]
    fn a_line_is_an_answer_with_any_line_end() {
        let expected = [answer("小林", None), answer("", None), answer("35", None), answer("last", None)];
        assert_eq!(inputs("小林\n\n35\r\nlast".as_bytes(), false), expected);
    }

    #[test]
    fn a_program_may_send_objects_with_an_answer_id() {
        let lines = "{\"user\": \"{{ x }}\", \"answer_id\": \"a1\"}\n{not json\nplain\n";
        let expected = [answer("{{ x }}", Some("a1")), answer("{not json", None), answer("plain", None)];
        assert_eq!(inputs(lines.as_bytes(), true), expected);
        assert!(matches!(inputs(b"{\"text\": 1}\n", true).as_slice(), [InputLine::Unusable(_)]));
        for cut_off in ["{\"user\": \"halb", "{ \"user\": \"x\", \"answer_id\"", "{\"user\": \"x\"} and more"] {
            assert!(matches!(inputs(cut_off.as_bytes(), true).as_slice(), [InputLine::Unusable(_)]), "{cut_off}");
            assert_eq!(inputs(cut_off.as_bytes(), false), [answer(cut_off, None)]);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_rejected_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; MAX_ANSWER_BYTES + 10];
        bytes.extend_from_slice(b"\nnext\n");
        let inputs = inputs(&bytes, false);
        assert!(matches!(inputs.as_slice(), [InputLine::Unusable(_), InputLine::Answer { .. }]), "{}", inputs.len());
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(inputs(b"a\xffb\n", false), [answer("a\u{fffd}b", None)]);
    }
}
