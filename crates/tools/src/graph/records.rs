//! Reads the records of a source one by one: lines, or in CSV also several lines if a quoted field contains them. The memory for it is
//! bounded whatever the file contains.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use crate::graph::columns::SourceForm;
use crate::graph::problem::LineProblem;

/// The maximum size of a record, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 64 * 1024;

/// The maximum number of lines of a record.
const MAX_RECORD_LINES: usize = 256;

/// A record with the number of its first line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    pub line: u32,
    pub content: Result<Vec<u8>, LineProblem>,
}

pub(crate) struct SourceRecords<R> {
    reader: R,
    form: SourceForm,
    line: u32,
    /// Lines that were read too far, because a quote does not end.
    pending: VecDeque<SourceRecord>,
}

impl<R: BufRead> SourceRecords<R> {
    pub(crate) fn new(reader: R, form: SourceForm) -> Self {
        Self { reader, form, line: 0, pending: VecDeque::new() }
    }

    /// The next record that is not blank; none at the end.
    pub(crate) fn next_record(&mut self) -> io::Result<Option<SourceRecord>> {
        loop {
            let Some(SourceRecord { line, content }) = self.next_line()? else { return Ok(None) };
            let Ok(bytes) = content else { return Ok(Some(SourceRecord { line, content })) };
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if self.form != SourceForm::Csv || !is_open(&bytes) {
                return Ok(Some(SourceRecord { line, content: Ok(bytes) }));
            }
            return Ok(Some(SourceRecord { line, content: self.rest_of_quoted(bytes)? }));
        }
    }

    /// Adds lines to a record until its quote ends. If it does not, only the first line is wrong.
    fn rest_of_quoted(&mut self, first: Vec<u8>) -> io::Result<Result<Vec<u8>, LineProblem>> {
        let mut record = first;
        let mut taken = Vec::new();
        while taken.len() < MAX_RECORD_LINES {
            let Some(SourceRecord { line, content }) = self.next_line()? else { break };
            let Ok(bytes) = content else {
                taken.push(SourceRecord { line, content });
                break;
            };
            record.push(b'\n');
            record.extend_from_slice(&bytes);
            taken.push(SourceRecord { line, content: Ok(bytes) });
            if record.len() > MAX_RECORD_BYTES {
                break;
            }
            if !is_open(&record) {
                return Ok(Ok(record));
            }
        }
        for line in taken.into_iter().rev() {
            self.pending.push_front(line);
        }
        Ok(Err(LineProblem::OpenQuote))
    }

    /// The next line without its end.
    fn next_line(&mut self) -> io::Result<Option<SourceRecord>> {
        if let Some(pending) = self.pending.pop_front() {
            return Ok(Some(pending));
        }
        let mut bytes = Vec::new();
        let max = u64::try_from(MAX_RECORD_BYTES).unwrap_or(u64::MAX) + 1;
        if self.reader.by_ref().take(max).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.line = self.line.saturating_add(1);
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() > MAX_RECORD_BYTES {
            self.skip_line()?;
            return Ok(Some(SourceRecord { line: self.line, content: Err(LineProblem::TooLong) }));
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if self.line == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(Some(SourceRecord { line: self.line, content: Ok(bytes) }))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                return Ok(());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// Whether a field that began with a quote has not ended.
fn is_open(record: &[u8]) -> bool {
    let mut is_quoted = false;
    let mut starts_field = true;
    let mut bytes = record.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if is_quoted => match bytes.peek() {
                Some(b'"') => {
                    bytes.next();
                }
                _ => is_quoted = false,
            },
            _ if is_quoted => {}
            b'"' if starts_field => is_quoted = true,
            b',' => {
                starts_field = true;
                continue;
            }
            b' ' if starts_field => continue,
            _ => {}
        }
        starts_field = false;
    }
    is_quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: SourceForm, text: &[u8]) -> Vec<(u32, Result<String, LineProblem>)> {
        let mut records = SourceRecords::new(io::BufReader::with_capacity(16, text), form);
        let mut found = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            found.push((record.line, record.content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())));
        }
        found
    }

    fn ok(text: &str) -> Result<String, LineProblem> {
        Ok(text.to_owned())
    }

    #[test]
    fn records_have_the_number_of_their_first_line() {
        let text = b"\xef\xbb\xbfa,b\r\n\n  \n\"c\nd\",e\nf,g";
        assert_eq!(read(SourceForm::Csv, text), [(1, ok("a,b")), (4, ok("\"c\nd\",e")), (6, ok("f,g"))]);
        assert_eq!(read(SourceForm::Tsv, b"\"a\tb\nc\td\n"), [(1, ok("\"a\tb")), (2, ok("c\td"))]);
    }

    #[test]
    fn a_quote_that_does_not_end_makes_only_its_line_wrong() {
        let text = format!("a,b\n\"c,d\n{}", "e,f\n".repeat(1000));
        let found = read(SourceForm::Csv, text.as_bytes());
        assert_eq!(found.len(), 1002);
        assert_eq!(found[..3], [(1, ok("a,b")), (2, Err(LineProblem::OpenQuote)), (3, ok("e,f"))]);
        assert_eq!(found[1001].0, 1002);
        assert_eq!(read(SourceForm::Csv, b"5\" gun,x,y\n"), [(1, ok("5\" gun,x,y"))], "a quote inside a field");
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_as_a_whole() {
        let text = format!("a\n{}\nb\n", "x".repeat(3 * MAX_RECORD_BYTES));
        assert_eq!(
            read(SourceForm::Jsonl, text.as_bytes()),
            [(1, ok("a")), (2, Err(LineProblem::TooLong)), (3, ok("b"))]
        );
    }
}
