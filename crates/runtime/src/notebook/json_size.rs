//! The size of values as JSON, without writing them.

use std::io::{self, Write};

use serde::Serialize;

/// The size of a value as JSON, in bytes.
pub(crate) fn json_size(value: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // Nothing that cannot be written is small enough for any limit.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// Counts the bytes written to it.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(buffer.len());
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
