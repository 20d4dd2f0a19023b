//! The output of a server, with a limit on the length of its lines, without which a server that writes no line end fills the memory, and
//! without answers that cannot be read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::ChildStderr;

use crate::mcp::garbled::replacement;
use crate::mcp::secrets::McpSecrets;

/// The maximum length of a line, which is one message, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 8 * 1024;

/// How much of the standard error of a server is logged, in bytes. The rest is read and dropped.
const MAX_LOGGED: usize = 64 * 1024;

/// Passes lines on, with an error instead of each answer that is not JSON, until a line is too long; then it is an error, which ends
/// the connection.
pub(crate) struct LimitedLines<R> {
    output: R,
    limit: usize,
    /// The last line so far.
    line: Vec<u8>,
    /// Complete lines that are not passed on yet.
    ready: VecDeque<u8>,
    /// Set when a line was too long.
    is_exceeded: Arc<AtomicBool>,
}

impl<R> LimitedLines<R> {
    pub(crate) fn new(output: R, limit: usize, is_exceeded: Arc<AtomicBool>) -> Self {
        Self { output, limit, line: Vec::new(), ready: VecDeque::new(), is_exceeded }
    }

    /// Adds what was read. False if a line is too long.
    fn add(&mut self, read: &[u8]) -> bool {
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            let is_complete = piece.ends_with(b"\n");
            if self.line.len() - usize::from(is_complete) > self.limit {
                return false;
            }
            if is_complete {
                self.end_line();
            }
        }
        true
    }

    fn end_line(&mut self) {
        match replacement(&self.line) {
            Some(error) => self.ready.extend(error.into_iter().chain(*b"\n")),
            None => self.ready.extend(self.line.drain(..)),
        }
        self.line.clear();
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        while self.ready.is_empty() {
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.output).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                // The output has ended.
                if self.line.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                self.end_line();
            } else if !self.add(read.filled()) {
                self.is_exceeded.store(true, Ordering::Relaxed);
                return Poll::Ready(Err(std::io::ErrorKind::InvalidData.into()));
            }
        }
        let (piece, _) = self.ready.as_slices();
        let count = piece.len().min(buffer.remaining());
        buffer.put_slice(piece.get(..count).unwrap_or_default());
        self.ready.drain(..count);
        Poll::Ready(Ok(()))
    }
}

/// Reads the standard error of a server to its end. It is only logged, without secrets, and below the levels that a person sees.
pub(crate) async fn log_errors(server: String, mut errors: ChildStderr, secrets: Arc<McpSecrets>) {
    let mut seen = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        if seen.len() < MAX_LOGGED {
            // From its start, because a secret may be in two parts.
            let start = seen.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            seen.extend_from_slice(buffer.get(..count).unwrap_or_default());
            let text = String::from_utf8_lossy(seen.get(start..).unwrap_or_default());
            let text = secrets.log_text(&text);
            tracing::debug!(server, text = text.trim_end(), "standard error of a server of tools");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_not_json_becomes_an_error() {
        let text = b"{\"id\":1,\"result\":1}\n{\"id\":2,\"result\":NaN}\n{\"id\":3,\"result\":3}";
        let mut all = String::new();
        let mut lines = LimitedLines::new(&text[..], 100, Arc::default());
        lines.read_to_string(&mut all).await.unwrap();
        let lines: Vec<&str> = all.lines().collect();
        assert!(lines.len() == 3 && lines[1].contains("\"id\":2,\"error\":"), "{all}");
        assert_eq!((lines[0], lines[2]), ("{\"id\":1,\"result\":1}", "{\"id\":3,\"result\":3}"));
    }

    async fn read(text: &'static [u8], limit: usize) -> (Result<usize, std::io::ErrorKind>, bool) {
        let flag = Arc::new(AtomicBool::new(false));
        let mut lines = LimitedLines::new(text, limit, Arc::clone(&flag));
        let mut all = Vec::new();
        let result = lines.read_to_end(&mut all).await.map_err(|error| error.kind());
        (result, flag.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn only_a_line_that_is_too_long_is_an_error() {
        assert_eq!(read(b"abcd\nabcd\n\nabcd", 4).await, (Ok(15), false));
        assert_eq!(read(b"abcd\nabcde\n", 4).await, (Err(std::io::ErrorKind::InvalidData), true));
    }
}
