//! Incremental splitting of bytes into lines that end with LF, CR LF or CR; each byte is scanned once.

use std::mem;

/// The byte-order mark of UTF-8, with which some programs begin what they send.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a stream. It buffers one line, whose length the caller limits.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    line: Vec<u8>,
    /// Whether `line` is complete and is cleared by the next [`LineBuffer::take`].
    complete: bool,
    /// Whether the last byte was a CR: an LF after it is not another line end.
    after_cr: bool,
    past_first_line: bool,
}

impl LineBuffer {
    /// Consumes bytes up to the next line end; true when [`LineBuffer::line`] is complete.
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> bool {
        if mem::take(&mut self.complete) {
            // Keeps the allocation for the next line.
            self.line.clear();
            self.past_first_line = true;
        }
        if !bytes.is_empty() && mem::take(&mut self.after_cr) {
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
            self.line.extend_from_slice(mem::take(bytes));
            return false;
        };
        let (line, rest) = bytes.split_at(end);
        self.line.extend_from_slice(line);
        self.after_cr = rest.starts_with(b"\r");
        *bytes = rest.get(1..).unwrap_or_default();
        self.complete = true;
        true
    }

    /// The current line, without its line end and without a byte order mark before the first line.
    pub(crate) fn line(&self) -> &[u8] {
        let mark = if self.past_first_line { None } else { self.line.strip_prefix(BYTE_ORDER_MARK) };
        mark.unwrap_or(&self.line)
    }

    /// The number of bytes of the incomplete line.
    pub(crate) const fn pending(&self) -> usize {
        if self.complete { 0 } else { self.line.len() }
    }
}
