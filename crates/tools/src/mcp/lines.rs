//! The output of a server, with a limit on the length of its lines: without one, a server that writes no line end fills the memory.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::ChildStderr;

/// The maximum length of a line, which is one message, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much of the standard error of a server is logged, in bytes. The rest is read and dropped.
const MAX_LOGGED: usize = 64 * 1024;

/// Passes bytes on until a line is too long; then it is an error, which ends the connection.
pub(crate) struct LimitedLines<R> {
    output: R,
    limit: usize,
    /// The length of the last line so far.
    length: usize,
    /// Set when a line was too long.
    is_exceeded: Arc<AtomicBool>,
}

impl<R> LimitedLines<R> {
    pub(crate) fn new(output: R, limit: usize, is_exceeded: Arc<AtomicBool>) -> Self {
        Self { output, limit, length: 0, is_exceeded }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(cx, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        let mut is_exceeded = false;
        for (number, piece) in read.split(|byte| *byte == b'\n').enumerate() {
            self.length = if number == 0 { self.length.saturating_add(piece.len()) } else { piece.len() };
            is_exceeded |= self.length > self.limit;
        }
        if is_exceeded {
            // An error comes without bytes.
            buffer.set_filled(before);
            self.is_exceeded.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(std::io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}

/// Reads the standard error of a server to its end. It is only logged, below the levels that a person sees.
pub(crate) async fn log_errors(server: String, mut errors: ChildStderr) {
    let mut logged = 0;
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        if logged < MAX_LOGGED {
            let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default());
            tracing::debug!(server, text = text.trim_end(), "standard error of a server of tools");
        }
        logged = logged.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
