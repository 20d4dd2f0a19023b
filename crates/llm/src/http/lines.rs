//! Lines out of bytes as they arrive, whatever ends them, LF, CR LF or CR; each byte is looked at once.

use std::mem;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a stream. It holds one of them: whoever feeds it bounds how long that may be.
#[derive(Debug, Default)]
pub struct LineBuffer {
    line: Vec<u8>,
    /// Whether `line` is whole, and goes with the next byte.
    whole: bool,
    /// Whether the last byte was a CR, whose LF must not count as another line end.
    after_cr: bool,
    begun: bool,
}

impl LineBuffer {
    /// Takes bytes up to the next line end, which may stand anywhere; true when [`LineBuffer::line`] is whole.
    pub fn take(&mut self, bytes: &mut &[u8]) -> bool {
        if mem::take(&mut self.whole) {
            // The next line most likely needs the same room.
            self.line.clear();
            self.begun = true;
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
        self.whole = true;
        true
    }

    /// The line that is being read, without its end and without a byte order mark before the first.
    pub fn line(&self) -> &[u8] {
        let mark = if self.begun { None } else { self.line.strip_prefix(BYTE_ORDER_MARK) };
        mark.unwrap_or(&self.line)
    }

    /// How many bytes there are of a line that has not ended.
    pub const fn pending(&self) -> usize {
        if self.whole { 0 } else { self.line.len() }
    }
}
