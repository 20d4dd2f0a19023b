//! Reads answers from standard input, one per line; for programs also as JSON objects.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{BufRead, Read};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

use crate::cli::async_runtime::start_thread;
use crate::cli::input::{InputLine, InputSource, RejectedInput, UnreadLines};
use bcc_engine::error::EngineError;
use bcc_lang::template::names::MAX_VALUE_BYTES;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::run::approval_decision::ApprovalDecision;

/// The limit on the size of an answer, in bytes: the same as for values of variables.
pub const MAX_ANSWER_BYTES: usize = MAX_VALUE_BYTES;

/// The maximum number of unread lines that are counted: a sender may never stop.
const MAX_UNREAD: usize = 1000;

/// How long a line that was sent before the session ended may take to arrive from the reading thread. A sender that keeps its
/// pipe open delays the end of the program by this time.
const UNREAD_WAIT: Duration = Duration::from_millis(50);

/// How the lines of standard input are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Each line is an answer.
    Lines,
    /// `--json`: a line that starts with `{` is a JSON object, and any other line is an answer.
    Json,
    /// `--json-objects`: each line is a JSON object.
    JsonObjects,
}

/// The lines of standard input. They are read on their own thread, so that signals are handled meanwhile.
pub struct InputLines {
    lines: Receiver<InputLine>,
}

/// Why a line could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooLong;

impl InputLines {
    /// Starts to read.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn of_standard_input(format: InputFormat) -> Result<Self, EngineError> {
        // Only one line is read ahead; the others stay with the sender.
        let (send, lines) = channel(1);
        start_thread("input", move || {
            let mut reader = std::io::BufReader::new(std::io::stdin());
            while let Some(line) = read_line(&mut reader) {
                if send.blocking_send(input(line, format)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { lines })
    }
}

#[async_trait(?Send)]
impl InputSource for InputLines {
    async fn next(&mut self) -> InputLine {
        self.lines.recv().await.unwrap_or(InputLine::End)
    }

    async fn unread(&mut self) -> UnreadLines {
        let mut unread = UnreadLines::default();
        while let Ok(Some(line)) = timeout(UNREAD_WAIT, self.lines.recv()).await {
            let is_blank = match &line {
                InputLine::Answer { text, .. } => text.trim().is_empty(),
                line => *line == InputLine::Blank,
            };
            if is_blank {
                continue;
            }
            unread.count += 1;
            if unread.count == MAX_UNREAD {
                unread.or_more = true;
                break;
            }
        }
        unread
    }
}

/// The next line without its line end; `Err` if it is too long, and then it is skipped. `None` at the end of input.
fn read_line(reader: &mut impl BufRead) -> Option<Result<Vec<u8>, TooLong>> {
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
        return Some(Err(TooLong));
    }
    Some(if line.len() > MAX_ANSWER_BYTES { Err(TooLong) } else { Ok(line) })
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

fn input(line: Result<Vec<u8>, TooLong>, format: InputFormat) -> InputLine {
    let Ok(bytes) = line else { return InputLine::Rejected(too_long()) };
    let Ok(text) = String::from_utf8(bytes) else {
        let help = Message::word("send text in UTF-8");
        return rejected("answer-not-utf8", "a line that is not valid UTF-8 was not accepted", help);
    };
    // Some programs begin their output with a byte order mark, which hides that the line starts with `{`.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    match format {
        InputFormat::Lines => InputLine::Answer { text, answer_id: None },
        _ if text.trim().is_empty() => InputLine::Blank,
        _ if text.trim_start().starts_with('{') => object(&text).unwrap_or_else(InputLine::Rejected),
        InputFormat::Json => InputLine::Answer { text, answer_id: None },
        InputFormat::JsonObjects => rejected(
            "answer-not-an-object",
            "a line that is not a JSON object was not accepted: `--json-objects` is set",
            expected_object(),
        ),
    }
}

/// The help for a line that is not the object it should be.
fn expected_object() -> Message {
    msg!("send {{\"user\": \"…\", \"answer_id\": \"…\"}} on one line; `answer_id` can be omitted")
}

/// The help for a decision that is not of the form that it should have.
fn expected_decision() -> Message {
    let names = Message::names(DecisionKind::ALL.map(DecisionKind::name));
    msg!(
        "send {{\"decision\": \"approve\", \"request_id\": \"…\", \"by\": \"…\", \"comment\": \"…\", \"values\": {{…}}}} on one line; all but `decision` can be omitted, which is one of {names}"
    )
}

/// The error for an answer that exceeds [`MAX_ANSWER_BYTES`].
pub fn too_long() -> RejectedInput {
    let message = msg!("an answer longer than {MAX_ANSWER_BYTES} bytes was not accepted");
    RejectedInput { code: "answer-too-long", message, help: None }
}

fn rejected(code: &'static str, message: &'static str, help: Message) -> InputLine {
    let (message, help) = (Message::word(message), Some(help));
    InputLine::Rejected(RejectedInput { code, message, help })
}

/// The answer in a JSON object. The errors of the parser are not repeated, because some contain values of the line.
fn object(text: &str) -> Result<InputLine, RejectedInput> {
    let error = |code, message| RejectedInput { code, message, help: Some(expected_object()) };
    let sent: Value = serde_json::from_str(text).map_err(|invalid| {
        let column = invalid.column();
        let message = msg!("a line that starts with `{{` is not valid JSON (column {column}) and was not accepted");
        error("answer-not-json", message)
    })?;
    let shape = |message: &'static str| error("answer-not-readable", Message::word(message));
    if sent.get("decision").is_some() {
        return decision(&sent).ok_or_else(|| RejectedInput {
            code: "answer-not-readable",
            message: Message::word("a JSON line was not accepted: it is not a decision of the documented form"),
            help: Some(expected_decision()),
        });
    }
    let Some(Value::String(user)) = sent.get("user") else {
        return Err(shape("a JSON line was not accepted: its `user` must be a text"));
    };
    let answer_id = match sent.get("answer_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => return Err(shape("a JSON line was not accepted: its `answer_id` must be a text")),
    };
    Ok(InputLine::Answer { text: user.clone(), answer_id })
}

/// A decision: `{"decision": "approve", "request_id": "…", "by": "…", "comment": "…", "values": {…}}`.
fn decision(sent: &Value) -> Option<InputLine> {
    let decision = DecisionKind::parse(sent.get("decision")?.as_str()?)?;
    let text = |name: &str| match sent.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    let values = match sent.get("values") {
        None | Some(Value::Null) => ExactValues::new(),
        Some(Value::Object(values)) => {
            values.iter().map(|(name, value)| (name.clone(), ExactValue::from(value.clone()))).collect()
        }
        Some(_) => return None,
    };
    let (request, by, comment) = (text("request_id")?, text("by")?, text("comment")?);
    Some(InputLine::Decision(Box::new(ApprovalDecision { request, decision, by, comment, values })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(bytes: &[u8], format: InputFormat) -> Vec<InputLine> {
        let mut reader = std::io::BufReader::new(bytes);
        std::iter::from_fn(|| read_line(&mut reader)).map(|line| input(line, format)).collect()
    }

    fn answer(text: &str, answer_id: Option<&str>) -> InputLine {
        InputLine::Answer { text: text.into(), answer_id: answer_id.map(str::to_owned) }
    }

    /// The codes of rejected lines; other lines are empty.
    fn codes(bytes: &[u8], format: InputFormat) -> Vec<&'static str> {
        let code = |line: InputLine| match line {
            InputLine::Rejected(rejected) => rejected.code,
            _ => "",
        };
        inputs(bytes, format).into_iter().map(code).collect()
    }

    #[test]
    fn a_line_is_an_answer_with_any_line_end() {
        let expected = [answer("小林", None), answer("", None), answer("35", None), answer("last", None)];
        assert_eq!(inputs("小林\n\n35\r\nlast".as_bytes(), InputFormat::Lines), expected);
    }

    #[test]
    fn a_program_may_send_objects_with_an_answer_id_and_blank_lines_mean_nothing() {
        let lines = "{\"user\": \"{{ x }}\", \"answer_id\": \"a1\"}\n \n {\"user\": \"\"}\nplain\n";
        let expected = [answer("{{ x }}", Some("a1")), InputLine::Blank, answer("", None), answer("plain", None)];
        assert_eq!(inputs(lines.as_bytes(), InputFormat::Json), expected);
        assert_eq!(codes(lines.as_bytes(), InputFormat::JsonObjects), ["", "", "", "answer-not-an-object"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_an_answer() {
        assert_eq!(inputs("\u{feff}小林".as_bytes(), InputFormat::Lines), [answer("小林", None)]);
        let object = "\u{feff}{\"user\": \"小林\"}".as_bytes();
        assert_eq!(inputs(object, InputFormat::Json), [answer("小林", None)]);
    }

    #[test]
    fn what_starts_like_an_object_is_an_answer_only_if_it_is_one() {
        let table = [
            ("{bad json", "answer-not-json"),
            ("{\"user\": \"halb", "answer-not-json"),
            ("  {\"user\": \"x\"} and more", "answer-not-json"),
            ("{}", "answer-not-readable"),
            ("{\"text\": \"x\"}", "answer-not-readable"),
            ("{\"user\": 5}", "answer-not-readable"),
            ("{\"user\": null}", "answer-not-readable"),
            ("{\"user\": \"x\", \"answer_id\": 5}", "answer-not-readable"),
        ];
        for (line, code) in table {
            assert_eq!(codes(line.as_bytes(), InputFormat::Json), [code], "{line}");
            assert_eq!(codes(line.as_bytes(), InputFormat::JsonObjects), [code], "{line}");
            assert_eq!(inputs(line.as_bytes(), InputFormat::Lines), [answer(line, None)]);
        }
    }

    #[test]
    fn the_help_for_a_decision_shows_a_decision() {
        for line in [r#"{"decision":"approve","request_id":5}"#, r#"{"decision":"frobnicate"}"#, r#"{"user":5}"#] {
            let InputLine::Rejected(rejected) = input(Ok(line.into()), InputFormat::Json) else { panic!("{line}") };
            let help = rejected.help.unwrap().to_string();
            let is_about_decision = help.contains(r#"{"decision": "approve", "request_id": "…""#)
                && help.contains("`approve`, `reject`, `push_back`, `edit`, `answer`");
            assert_eq!(is_about_decision, line.contains("decision"), "{line}: {help}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_rejected_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; MAX_ANSWER_BYTES + 10];
        bytes.extend_from_slice(b"\nnext\n");
        let inputs = inputs(&bytes, InputFormat::Lines);
        assert!(matches!(inputs.as_slice(), [InputLine::Rejected(_), InputLine::Answer { .. }]), "{}", inputs.len());
    }

    #[test]
    fn a_line_that_is_not_utf8_is_rejected_and_never_replaced() {
        for format in [InputFormat::Lines, InputFormat::Json, InputFormat::JsonObjects] {
            assert_eq!(codes(b"a\xffb\n", format), ["answer-not-utf8"], "{format:?}");
        }
    }
}
