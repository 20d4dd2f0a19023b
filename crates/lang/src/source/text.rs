//! The text of one file: decoded or rejected, with byte offsets converted to lines and columns.

use crate::message::message::Message;
use crate::message::msg;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::source::diagnostic::Diagnostic;
use crate::source::json_file::{NOTEBOOK_HELP, damaged_json, is_notebook_name};
use crate::source::locate::LastLocated;
use crate::source::secrets::{Secret, secrets};
use crate::source::span::Span;

/// The maximum size of a file, in bytes (8 MiB): scripts are written by people.
pub const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// The maximum size of a workflow state file, in bytes (64 MiB): its steps and their results are written by programs.
pub const MAX_STATE_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Whether a text may be a workflow state file: it names its id near its start.
pub fn may_be_state_file(text: &[u8]) -> bool {
    const KEY: &[u8] = b"workflow_id";
    const SEARCHED_BYTES: usize = 4096;
    let start = text.get(..SEARCHED_BYTES).unwrap_or(text);
    memchr::memmem::find(start, KEY).is_some()
}

/// Whether programs write such a text, so that it may be larger than what people write: a workflow state file, or a state of the
/// behavior protocol.
pub(crate) fn may_be_large(text: &[u8]) -> bool {
    const KEY: &[u8] = b"\"observation\"";
    const SEARCHED_BYTES: usize = 256;
    let start = text.get(..SEARCHED_BYTES).unwrap_or(text);
    may_be_state_file(text) || memchr::memmem::find(start, KEY).is_some()
}

/// The maximum size of a file with this text.
pub(crate) fn max_bytes(text: &[u8]) -> usize {
    if may_be_large(text) { MAX_STATE_FILE_BYTES } else { MAX_FILE_BYTES }
}

/// The UTF-8 byte-order mark that some editors put at the start of a file.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file's text, and its name in messages (a path relative to the project).
pub struct SourceFile {
    name: String,
    text: String,
    /// The byte at which each line starts; never empty.
    line_starts: Vec<usize>,
    /// The number of characters that start before each multiple of [`STRIDE`] bytes; computed for the first column far into a
    /// long line.
    strides: OnceLock<Vec<usize>>,
    /// The text that looks like a secret; computed for the first report.
    secrets: OnceLock<Vec<Secret>>,
    last_located: LastLocated,
}

/// A column is counted over at most about this many bytes, so that many diagnostics in one line of megabytes cost no more than
/// as many elsewhere.
const STRIDE: usize = 4096;

impl SourceFile {
    /// A file from text in memory: a string in the program, a request, a test.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts = line_starts(&text);
        let (strides, secrets) = (OnceLock::new(), OnceLock::new());
        Self { name: name.into(), text, line_starts, strides, secrets, last_located: LastLocated::default() }
    }

    /// A file from its bytes on disk. Nothing is stripped: a UTF-8 byte-order mark stays, so offsets are those of the file.
    /// Errors: a diagnostic `file-too-large` (more than [`MAX_FILE_BYTES`]) or `not-text` (UTF-16, binary, not UTF-8). Its file
    /// contains the text up to the first invalid byte, so that it can be shown.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Box<Diagnostic>> {
        let name = name.into();
        if bytes.len() > max_bytes(&bytes) {
            return Err(Box::new(too_large(&Arc::new(Self::new(name, "")), max_bytes(&bytes))));
        }
        if let Some(order) = utf16_order(&bytes) {
            let file = Arc::new(Self::new(name, ""));
            let message = msg!("the file is UTF-16 ({order}), not UTF-8", order = Message::word(order));
            let help = "save it again as UTF-8";
            return Err(Box::new(Diagnostic::error("not-text", message, &file, Span::default()).with_help(help)));
        }
        let nul = memchr::memchr(0, &bytes);
        match String::from_utf8(bytes) {
            Ok(text) => match nul {
                None => Ok(Self::new(name, text)),
                Some(byte) => Err(Box::new(binary(&Arc::new(Self::new(name, text)), byte))),
            },
            Err(error) => {
                let byte = error.utf8_error().valid_up_to();
                if let Some(nul) = nul {
                    return Err(Box::new(binary(&Arc::new(Self::new(name, "")), nul)));
                }
                let mut bytes = error.into_bytes();
                bytes.truncate(byte);
                let file = Arc::new(Self::new(name, String::from_utf8_lossy(&bytes)));
                if let Some(damaged) = damaged_json(&file, byte) {
                    return Err(Box::new(damaged));
                }
                let (line, _) = file.line_column(byte);
                let message = msg!("the file is not valid UTF-8: invalid byte at offset {byte}, line {line}");
                let help = "it may use GBK or another legacy encoding: save it again as UTF-8";
                let span = Span::point(file.text.len());
                Err(Box::new(Diagnostic::error("not-text", message, &file, span).with_help(help)))
            }
        }
    }

    pub fn secrets(&self) -> &[Secret] {
        self.secrets.get_or_init(|| secrets(&self.text))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn last_located(&self) -> &LastLocated {
        &self.last_located
    }

    /// The line and the column of a byte, both from 1, the column in characters. Any value is valid: one past the end counts as
    /// the end, one inside a character as its start. A byte-order mark has no column.
    pub fn line_column(&self, byte: usize) -> (usize, usize) {
        let byte = self.text.floor_char_boundary(byte.min(self.text.len()));
        let line = self.line(byte);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        if byte - start > STRIDE {
            let mark = usize::from(start == 0 && self.text.starts_with(BYTE_ORDER_MARK));
            return (line, 1 + self.characters_before(byte) - self.characters_before(start) - mark);
        }
        let before = self.text.get(start..byte).unwrap_or("");
        (line, 1 + without_mark(start, before).chars().count())
    }

    /// The number of characters before `byte`, which is on a character boundary.
    fn characters_before(&self, byte: usize) -> usize {
        let strides = self.strides.get_or_init(|| {
            let counts = self.text.as_bytes().chunks(STRIDE).map(count_characters);
            let sums = counts.scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count)));
            sums.collect()
        });
        let index = (byte / STRIDE).min(strides.len().saturating_sub(1));
        let rest = self.text.as_bytes().get(index * STRIDE..byte).unwrap_or_default();
        strides.get(index).copied().unwrap_or(0) + count_characters(rest)
    }

    /// The line of a byte, from 1. The length of the line does not matter.
    pub fn line(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= byte).max(1)
    }

    /// The bytes of a line (from 1) without its break and without a byte-order mark; `None` past the last line.
    pub fn line_span(&self, line: usize) -> Option<Span> {
        let index = line.checked_sub(1)?;
        let start = *self.line_starts.get(index)?;
        let end = self.line_starts.get(index + 1).copied().unwrap_or(self.text.len());
        let raw = self.text.get(start..end)?;
        let shown = without_mark(start, raw);
        let start = start + (raw.len() - shown.len());
        Some(Span::new(start, start + shown.trim_end_matches(['\n', '\r']).len()))
    }

    /// The text that `span` covers; empty if the span does not fit the text.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// `span` clamped to the text and extended to character boundaries.
    pub fn clamp(&self, span: Span) -> Span {
        let start = self.text.floor_char_boundary(span.start.min(self.text.len()));
        let end = self.text.ceil_char_boundary(span.end.min(self.text.len()));
        Span::new(start, end)
    }
}

/// The name and the size only: the author's text stays out of logs.
impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceFile").field("name", &self.name).field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// The diagnostic for a file of more than [`MAX_FILE_BYTES`]. A reader may report it before it has read the whole file.
pub(crate) fn too_large(file: &Arc<SourceFile>, max_bytes: usize) -> Diagnostic {
    let limit = max_bytes / (1024 * 1024);
    let message = msg!("the file is larger than {limit} MiB, which is the maximum size");
    let found = Diagnostic::error("file-too-large", message, file, Span::default());
    if is_notebook_name(file.name()) {
        return found.with_help(NOTEBOOK_HELP);
    }
    if max_bytes > MAX_FILE_BYTES {
        return found.with_help("a state holds results that are too large: leave them out, or begin without the state");
    }
    found.with_help("split it into several files; put the data that a script works on in separate files")
}

/// The diagnostic for text with a NUL at `byte`.
pub(crate) fn binary(file: &Arc<SourceFile>, byte: usize) -> Diagnostic {
    if let Some(damaged) = damaged_json(file, byte) {
        return damaged;
    }
    // Text around a NUL is seldom fit for a terminal: mark the position only if the file is text up to there.
    let span = if byte < file.text.len() { Span::new(byte, byte + 1) } else { Span::default() };
    let message = msg!("this is not a text file: NUL byte at offset {byte}");
    Diagnostic::error("not-text", message, file, span)
        .with_help("scripts are YAML files in UTF-8; is this the right file?")
}

/// The start of a text, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    /// How many characters of the author's text a message repeats.
    const EXCERPT_CHARS: usize = 40;
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.to_owned(),
    }
}

/// The start of every line. A line ends at `\n`, `\r\n` or a lone `\r`, as in YAML.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = vec![0];
    for position in memchr::memchr2_iter(b'\n', b'\r', bytes) {
        let pair = bytes.get(position) == Some(&b'\r') && bytes.get(position + 1) == Some(&b'\n');
        if !pair {
            starts.push(position + 1);
        }
    }
    starts
}

/// The number of characters that start in these bytes of UTF-8.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

fn without_mark(start: usize, text: &str) -> &str {
    if start == 0 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text }
}

/// The byte order of UTF-16, by the byte-order mark or by a first pair of ASCII characters.
fn utf16_order(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] => Some("little endian"),
        [0xfe, 0xff, ..] => Some("big endian"),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some("little endian"),
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some("big endian"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_characters() {
        let file = SourceFile::new("a.yaml", "姓名: 张三\r\n年龄: 5\rx\n");
        let table = [
            (0, (1, 1)),
            (3, (1, 2)),
            (4, (1, 2)),
            (6, (1, 3)),
            (14, (1, 7)),
            (16, (2, 1)),
            (22, (2, 3)),
            (25, (2, 6)),
            (26, (3, 1)),
            (28, (4, 1)),
            (9_999, (4, 1)),
            (usize::MAX, (4, 1)),
        ];
        for (byte, expected) in table {
            assert_eq!(file.line_column(byte), expected, "byte {byte}");
        }
    }

    #[test]
    fn columns_of_a_long_line_equal_those_of_a_full_count() {
        let line = "a好😀é".repeat(1_000);
        for start in ["", "\u{feff}", "短\n", "\u{feff}短\n"] {
            let text = format!("{start}{line}\n{line}");
            let file = SourceFile::new("a.yaml", text.as_str());
            let mut expected = (1, 1);
            for (byte, character) in text.char_indices().filter(|(_, character)| *character != BYTE_ORDER_MARK) {
                if byte % 7 == 0 {
                    assert_eq!(file.line_column(byte), expected, "byte {byte}");
                }
                expected = if character == '\n' { (expected.0 + 1, 1) } else { (expected.0, expected.1 + 1) };
            }
            assert_eq!(file.line_column(text.len()), expected);
        }
    }

    #[test]
    fn a_byte_order_mark_keeps_offsets_and_takes_no_column() {
        let file = SourceFile::from_bytes("a.yaml", b"\xef\xbb\xbfa: b\n".to_vec()).unwrap();
        assert_eq!(file.text().len(), 8);
        assert_eq!(file.line_column(3), (1, 1));
        assert_eq!(file.line_column(6), (1, 4));
        assert_eq!(file.line_span(1), Some(Span::new(3, 7)));
    }

    #[test]
    fn line_spans_leave_out_the_break() {
        let file = SourceFile::new("a.yaml", "a\r\n好\n");
        assert_eq!(file.line_span(1), Some(Span::new(0, 1)));
        assert_eq!(file.line_span(2), Some(Span::new(3, 6)));
        assert_eq!(file.line_span(3), Some(Span::point(7)));
        assert_eq!(file.line_span(4), None);
        assert_eq!(file.line_span(0), None);
    }

    #[test]
    fn what_is_not_text_is_rejected() {
        let table: [(&[u8], &str); 5] = [
            (b"\xff\xfea\0:\0", "UTF-16 (little endian)"),
            (b"\0a\0:\0 ", "UTF-16 (big endian)"),
            (b"abc\0def", "NUL byte at offset 3"),
            (b"\x7fELF\0\xff\xfe", "NUL"),
            ("a: b\nc: 好".as_bytes().split_last().unwrap().1, "byte at offset 8, line 2"),
        ];
        for (bytes, expected) in table {
            let error = SourceFile::from_bytes("a.yaml", bytes.to_vec()).unwrap_err();
            assert_eq!(error.rule, "not-text");
            assert!(error.message.to_string().contains(expected), "{}", error.message);
            assert!(error.span.end <= error.file.text().len());
        }
    }

    #[test]
    fn a_file_over_the_limit_is_rejected_by_its_size() {
        let error = SourceFile::from_bytes("a.yaml", vec![b'a'; MAX_FILE_BYTES + 1]).unwrap_err();
        assert_eq!(error.rule, "file-too-large");
        assert!(SourceFile::from_bytes("a.yaml", vec![b'a'; MAX_FILE_BYTES]).is_ok());
    }

    #[test]
    fn a_state_has_a_limit_and_advice_of_its_own() {
        let of_size = |bytes| {
            let mut state = br#"{"observation": {}}"#.to_vec();
            state.resize(bytes, b' ');
            SourceFile::from_bytes("state.json", state)
        };
        assert!(of_size(MAX_FILE_BYTES + 1).is_ok());
        let error = of_size(MAX_STATE_FILE_BYTES + 1).unwrap_err();
        assert_eq!(error.message.to_string(), "the file is larger than 64 MiB, which is the maximum size");
        assert!(error.help.unwrap().to_string().starts_with("a state holds results"));
    }

    #[test]
    fn a_debug_form_shows_no_text() {
        let shown = format!("{:?}", SourceFile::new("a.yaml", "secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
