//! Reports what a program gave: the metadata of the outcome, and the values for `output`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::effects::output::{MAX_KEPT_HALF, ProcessOutput};
use crate::effects::process::{ProcessEnd, ProcessResult};
use bcc_lang::value::exact::ExactValues;
use bcc_lang::value::mask::Masker;
use bcc_store::rows::TextRow;

/// What `output` can take.
pub(crate) const OUTPUTS: [&str; 3] = ["exit_code", "stdout", "stderr"];

/// The maximum size of the standard output and of the standard error in the outcome and in variables, in bytes each: half of it is
/// the beginning, half the end.
const MAX_RESULT_BYTES: usize = 64 * 1024;

/// An output as text.
struct OutputText {
    text: String,
    is_truncated: bool,
    /// Whether some bytes were no UTF-8 and were replaced.
    is_replaced: bool,
}

impl OutputText {
    /// The whole output, or if it is longer than twice `half`, so much of its beginning and of its end.
    fn of(output: &ProcessOutput, half: usize) -> Self {
        if output.dropped == 0 && output.bytes.len() <= 2 * half {
            let text = String::from_utf8_lossy(&output.bytes);
            let is_replaced = matches!(text, Cow::Owned(_));
            return Self { text: text.into_owned(), is_truncated: false, is_replaced };
        }
        let head = whole_characters(output.bytes.get(..half).unwrap_or(&output.bytes));
        let end = if output.dropped == 0 { &output.bytes } else { &output.tail };
        let tail = after_cut_character(end.get(end.len().saturating_sub(half)..).unwrap_or(end));
        let left_out = output.len() - head.len() as u64 - tail.len() as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let is_replaced = [&head, &tail].into_iter().any(|text| matches!(text, Cow::Owned(_)));
        let text = format!("{head}\n[… {left_out} bytes left out …]\n{tail}");
        Self { text, is_truncated: true, is_replaced }
    }

    fn for_result(output: &ProcessOutput) -> Self {
        Self::of(output, MAX_RESULT_BYTES / 2)
    }
}

/// `bytes` without the beginning of a character at its end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    // Bytes from 0xc0 on begin a character of several bytes.
    let last = bytes.iter().rev().take(4).position(|byte| *byte >= 0xc0).map(|from_end| bytes.len() - 1 - from_end);
    let is_incomplete = |start: &usize| {
        let character = bytes.get(*start..).map(std::str::from_utf8);
        matches!(character, Some(Err(error)) if error.error_len().is_none())
    };
    last.filter(is_incomplete).and_then(|start| bytes.get(..start)).unwrap_or(bytes)
}

/// `bytes` without the end of a character at its beginning.
fn after_cut_character(bytes: &[u8]) -> &[u8] {
    let is_continuation = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let cut = bytes.iter().take(3).take_while(is_continuation).count();
    bytes.get(cut..).unwrap_or(bytes)
}

/// The values that `output` can take. Trailing line ends are removed, as shells do in command substitution.
pub(crate) fn values(result: &ProcessResult) -> ExactValues {
    let text = |output| Value::from(OutputText::for_result(output).text.trim_end_matches(['\n', '\r'])).into();
    let mut values = ExactValues::new();
    if let ProcessEnd::Code(code) = result.ended {
        values.insert("exit_code".into(), Value::from(code).into());
    }
    values.insert("stdout".into(), text(&result.stdout));
    values.insert("stderr".into(), text(&result.stderr));
    values
}

/// The metadata of an outcome, and the outputs that are too long for it, which are stored as texts of their own. `is_sensitive` says
/// whether the texts must not be stored, because a variable that takes one of them is sensitive; `masker` masks other sensitive values.
pub(crate) fn metadata(
    result: &ProcessResult,
    is_sensitive: bool,
    masker: &Masker,
) -> (Map<String, Value>, Vec<TextRow>) {
    let (mut metadata, mut texts) = (Map::new(), Vec::new());
    match result.ended {
        ProcessEnd::Code(code) => _ = metadata.insert("exit_code".into(), code.into()),
        ProcessEnd::Signal(signal) => _ = metadata.insert("signal".into(), signal.into()),
        ProcessEnd::TimedOut => {}
    }
    for (name, output) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
        metadata.insert(format!("{name}_bytes"), output.len().into());
        if is_sensitive {
            continue;
        }
        let shown = OutputText::for_result(output);
        metadata.insert(name.into(), shown.text.into());
        if shown.is_truncated {
            let kept = OutputText::of(output, MAX_KEPT_HALF);
            let row = TextRow::new(if masker.is_empty() { kept.text } else { masker.text(&kept.text) });
            metadata.insert(format!("{name}_truncated"), true.into());
            metadata.insert(format!("{name}_sha256"), row.sha256.clone().into());
            metadata.insert(format!("{name}_kept_bytes"), row.text.len().into());
            if kept.is_truncated {
                metadata.insert(format!("{name}_kept_truncated"), true.into());
            }
            texts.push(row);
        }
        if shown.is_replaced {
            metadata.insert(format!("{name}_not_utf8"), true.into());
        }
    }
    (metadata, texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn output(bytes: &[u8]) -> ProcessOutput {
        ProcessOutput { bytes: bytes.to_vec(), ..ProcessOutput::default() }
    }

    #[test]
    fn a_long_output_is_cut_in_its_middle_between_characters_and_counted() {
        for half in 20..24 {
            for shift in ["", "a", "ab"] {
                let long = format!("{shift}{}", "长".repeat(30));
                let text = OutputText::of(&output(long.as_bytes()), half);
                let (head, rest) = text.text.split_once("\n[… ").unwrap();
                let (left_out, tail) = rest.split_once(" bytes left out …]\n").unwrap();
                assert!(
                    long.starts_with(head) && long.ends_with(tail) && !text.is_replaced,
                    "{text}",
                    text = text.text
                );
                assert!(head.len() > half - 3 && tail.len() > half - 3);
                let left_out: usize = left_out.parse().unwrap();
                assert_eq!(head.len() + left_out + tail.len(), long.len());
            }
        }
        let dropped = ProcessOutput { bytes: b"head".into(), dropped: 90, tail: b"tail!".into() };
        assert_eq!(OutputText::of(&dropped, 3).text, "hea\n[… 93 bytes left out …]\nil!");
        let exact = OutputText::for_result(&output(&vec![b'x'; MAX_RESULT_BYTES]));
        assert!(!exact.is_truncated && exact.text.len() == MAX_RESULT_BYTES);
    }

    #[test]
    fn what_is_too_long_for_the_outcome_is_a_text_of_its_own_in_which_sensitive_values_are_masked() {
        let long = "secret\n".repeat(MAX_RESULT_BYTES);
        let result = ProcessResult {
            ended: ProcessEnd::Code(0),
            stdout: output(long.as_bytes()),
            stderr: output(b""),
            left_processes: 0,
        };
        let (fields, texts) = metadata(&result, false, &Masker::new(&[json!("secret").into()]));
        let [row] = texts.as_slice() else { panic!("{} texts", texts.len()) };
        assert_eq!(row.text, "***\n".repeat(MAX_RESULT_BYTES));
        let of_text = ["stdout_bytes", "stdout_kept_bytes", "stdout_sha256"].map(|name| fields[name].clone());
        assert_eq!(of_text, [json!(long.len()), json!(row.text.len()), json!(row.sha256)]);
        let (fields, texts) = metadata(&result, true, &Masker::default());
        assert!(texts.is_empty() && !fields.contains_key("stdout_sha256"));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_reported() {
        let result = ProcessResult {
            ended: ProcessEnd::Code(3),
            stdout: output(b"a\xff\n\n"),
            stderr: output("好".as_bytes()),
            left_processes: 0,
        };
        assert_eq!(
            Value::from(metadata(&result, false, &Masker::default()).0),
            json!({ "exit_code": 3, "stdout": "a\u{fffd}\n\n", "stdout_bytes": 4, "stdout_not_utf8": true, "stderr": "好", "stderr_bytes": 3 })
        );
        assert_eq!(
            Value::from(metadata(&result, true, &Masker::default()).0),
            json!({ "exit_code": 3, "stdout_bytes": 4, "stderr_bytes": 3 })
        );
        assert_eq!(values(&result)["stdout"], json!("a\u{fffd}"));
    }
}
