//! Reports what a program gave: the metadata of the outcome, and the values for `output`.

use serde_json::{Map, Value};

use crate::effects::process::{ProcessEnd, ProcessOutput, ProcessResult};
use bcc_lang::value::exact::ExactValues;

/// What `output` can take.
pub(crate) const OUTPUTS: [&str; 3] = ["exit_code", "stdout", "stderr"];

/// The maximum stored size of the standard output and of the standard error, in bytes each: they become part of the session.
const MAX_STORED_BYTES: usize = 64 * 1024;

/// What is stored of an output.
struct StoredText {
    text: String,
    /// The size of all that was printed.
    bytes: u64,
    is_truncated: bool,
    /// Whether some bytes were no UTF-8 and were replaced.
    is_replaced: bool,
}

impl StoredText {
    fn of(output: &ProcessOutput) -> Self {
        let bytes = output.bytes.len() as u64 + output.dropped;
        let mut stored = output.bytes.get(..MAX_STORED_BYTES).unwrap_or(&output.bytes);
        let is_truncated = (stored.len() as u64) < bytes;
        // The end may have cut a character in two.
        if is_truncated
            && let Err(error) = std::str::from_utf8(stored)
            && error.error_len().is_none()
        {
            stored = stored.get(..error.valid_up_to()).unwrap_or(stored);
        }
        let text = String::from_utf8_lossy(stored);
        let is_replaced = matches!(text, std::borrow::Cow::Owned(_));
        Self { text: text.into_owned(), bytes, is_truncated, is_replaced }
    }
}

/// The values that `output` can take. Trailing line ends are removed, as shells do in command substitution.
pub(crate) fn values(result: &ProcessResult) -> ExactValues {
    let text = |output| Value::from(StoredText::of(output).text.trim_end_matches(['\n', '\r'])).into();
    let mut values = ExactValues::new();
    if let ProcessEnd::Code(code) = result.ended {
        values.insert("exit_code".into(), Value::from(code).into());
    }
    values.insert("stdout".into(), text(&result.stdout));
    values.insert("stderr".into(), text(&result.stderr));
    values
}

/// The metadata of an outcome. `is_sensitive` says whether the texts must not be stored, because a variable that takes one of
/// them is sensitive.
pub(crate) fn metadata(result: &ProcessResult, is_sensitive: bool) -> Map<String, Value> {
    let mut metadata = Map::new();
    match result.ended {
        ProcessEnd::Code(code) => _ = metadata.insert("exit_code".into(), code.into()),
        ProcessEnd::Signal(signal) => _ = metadata.insert("signal".into(), signal.into()),
        ProcessEnd::TimedOut => {}
    }
    for (name, output) in [("stdout", &result.stdout), ("stderr", &result.stderr)] {
        let stored = StoredText::of(output);
        metadata.insert(format!("{name}_bytes"), stored.bytes.into());
        if is_sensitive {
            continue;
        }
        metadata.insert(name.into(), stored.text.into());
        if stored.is_truncated {
            metadata.insert(format!("{name}_truncated"), true.into());
        }
        if stored.is_replaced {
            metadata.insert(format!("{name}_not_utf8"), true.into());
        }
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn output(bytes: &[u8], dropped: u64) -> ProcessOutput {
        ProcessOutput { bytes: bytes.to_vec(), dropped }
    }

    #[test]
    fn outputs_are_cut_at_a_character_and_counted() {
        let long = "长".repeat(MAX_STORED_BYTES);
        let stored = StoredText::of(&output(long.as_bytes(), 5));
        assert_eq!((stored.text.len(), stored.bytes), (MAX_STORED_BYTES - 1, 3 * MAX_STORED_BYTES as u64 + 5));
        assert!(stored.is_truncated && !stored.is_replaced);
        let exact = StoredText::of(&output(&vec![b'x'; MAX_STORED_BYTES], 0));
        assert!(!exact.is_truncated && exact.text.len() == MAX_STORED_BYTES);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_reported() {
        let result = ProcessResult {
            ended: ProcessEnd::Code(3),
            stdout: output(b"a\xff\n\n", 0),
            stderr: output("好".as_bytes(), 0),
        };
        assert_eq!(
            Value::from(metadata(&result, false)),
            json!({ "exit_code": 3, "stdout": "a\u{fffd}\n\n", "stdout_bytes": 4, "stdout_not_utf8": true, "stderr": "好", "stderr_bytes": 3 })
        );
        assert_eq!(
            Value::from(metadata(&result, true)),
            json!({ "exit_code": 3, "stdout_bytes": 4, "stderr_bytes": 3 })
        );
        assert_eq!(values(&result)["stdout"], json!("a\u{fffd}"));
    }
}
