//! The output of a program: what is kept of it, and what is shown while the program runs.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// What is kept of each of the two outputs of a program at most, in bytes: this much of its beginning, and as much of its end.
/// Further output is read, counted and dropped, so that a program that prints without end is stopped by its timeout and not by
/// a full pipe.
pub(crate) const MAX_KEPT_HALF: usize = 4 * 1024 * 1024;

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The maximum size of a line that is shown while the program runs, in bytes. Longer lines are left out there.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// How much of an output is shown while the program runs, in bytes per [`WINDOW`]. Showing more would slow the program down, and
/// nobody can read it.
const MAX_WINDOW_BYTES: usize = 64 * 1024;
const WINDOW: Duration = Duration::from_millis(500);

/// How long an unfinished line waits for its end before it is shown.
#[cfg(feature = "jupyter")]
const UNFINISHED_DELAY: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

impl OutputStream {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A receiver of output while a program runs.
pub trait OutputObserver: Send + Sync {
    /// One or more complete lines, an unfinished line that the next text of the same stream continues, or the end of the output; bytes
    /// that are not UTF-8 are replaced. Only the code of cells has unfinished lines passed on. `left_out` is the number of bytes
    /// before it that are not shown. The text is empty if there is only such a number.
    fn output(&self, stream: OutputStream, text: &str, left_out: u64);
}

/// Shows nothing.
pub struct NoOutputObserver;

impl OutputObserver for NoOutputObserver {
    fn output(&self, _: OutputStream, _: &str, _: u64) {}
}

/// What a program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOutput {
    /// All of it, or if something was dropped, its beginning.
    pub bytes: Vec<u8>,
    /// The number of bytes between `bytes` and `tail`.
    pub dropped: u64,
    /// Its end, if something was dropped.
    pub tail: Vec<u8>,
}

impl ProcessOutput {
    /// The number of bytes that were printed.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.dropped + self.tail.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Output that is being read.
struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Capture {
    fn push(&mut self, chunk: &[u8]) {
        let (for_head, rest) = chunk.split_at(chunk.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(for_head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    fn finish(self) -> ProcessOutput {
        let Self { mut head, tail, dropped, .. } = self;
        if dropped == 0 {
            head.extend(tail);
            return ProcessOutput { bytes: head, ..ProcessOutput::default() };
        }
        ProcessOutput { bytes: head, dropped, tail: tail.into() }
    }
}

/// Reads an output to its end. What was read is in `output` also if the future is dropped before.
pub(crate) struct OutputReader<'a> {
    capture: Capture,
    live: LiveLines<'a>,
}

impl<'a> OutputReader<'a> {
    pub(crate) fn new(stream: OutputStream, observer: &'a dyn OutputObserver) -> Self {
        let capture = Capture { half: MAX_KEPT_HALF, head: Vec::new(), tail: VecDeque::new(), dropped: 0 };
        Self { capture, live: LiveLines::new(stream, observer) }
    }

    pub(crate) async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; CHUNK_BYTES];
        // A broken pipe counts as the end of the output.
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            let read = chunk.get(..read).unwrap_or_default();
            self.capture.push(read);
            self.live.push(read, Instant::now());
        }
    }

    pub(crate) fn finish(self) -> ProcessOutput {
        self.live.finish();
        self.capture.finish()
    }
}

/// Passes on complete lines as they arrive, up to a rate.
pub(crate) struct LiveLines<'a> {
    stream: OutputStream,
    observer: &'a dyn OutputObserver,
    /// The beginning of a line, or what follows the part of it that was passed on.
    line: Vec<u8>,
    /// When the first byte of `line` came.
    waits_since: Option<Instant>,
    /// Whether the rest of the current line is left out.
    skips_line: bool,
    left_out: u64,
    window: Option<Instant>,
    /// How much was shown in this window.
    shown: usize,
    /// Whether nothing more is shown in this window.
    is_full: bool,
    /// Whether a carriage return ends a line as well: a progress bar has no other end while it moves.
    shows_updates: bool,
}

impl<'a> LiveLines<'a> {
    fn new(stream: OutputStream, observer: &'a dyn OutputObserver) -> Self {
        let line = Vec::new();
        Self {
            stream,
            observer,
            line,
            waits_since: None,
            skips_line: false,
            left_out: 0,
            window: None,
            shown: 0,
            is_full: false,
            shows_updates: false,
        }
    }

    /// Passes on each state of a line that is written over and over, as progress bars are, and lines that are not finished soon
    /// ([`LiveLines::due`]).
    #[cfg(feature = "jupyter")]
    pub(crate) fn with_updates(stream: OutputStream, observer: &'a dyn OutputObserver) -> Self {
        Self { shows_updates: true, ..Self::new(stream, observer) }
    }

    /// When the unfinished line is to be passed on, if there is one.
    #[cfg(feature = "jupyter")]
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waits_since.map(|since| since + UNFINISHED_DELAY)
    }

    /// Passes on the unfinished line if it is due; what follows it comes as its continuation. Only whole characters were pushed.
    #[cfg(feature = "jupyter")]
    pub(crate) fn pass_on(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.waits_since = None;
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            self.show(&text);
        }
    }

    fn is_end(&self, byte: u8) -> bool {
        byte == b'\n' || self.shows_updates && byte == b'\r'
    }

    pub(crate) fn push(&mut self, chunk: &[u8], now: Instant) {
        if self.window.is_none_or(|start| now.duration_since(start) >= WINDOW) {
            self.window = Some(now);
            self.shown = 0;
            self.is_full = false;
        }
        if self.is_full {
            // Without a look at the lines, so that the program is not slowed down.
            self.left_out += (self.line.len() + chunk.len()) as u64;
            self.line.clear();
            self.waits_since = None;
            self.skips_line = !chunk.last().is_some_and(|byte| self.is_end(*byte));
            return;
        }
        let mut text = String::new();
        let mut rest = chunk;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| self.is_end(*byte)).map_or(rest.len(), |end| end + 1);
            let (part, after) = rest.split_at(end);
            rest = after;
            if self.line.is_empty() {
                self.waits_since = Some(now);
            }
            let is_complete = part.last().is_some_and(|byte| self.is_end(*byte));
            let size = self.line.len() + part.len();
            self.is_full |= self.shown + text.len() + size > MAX_WINDOW_BYTES;
            if self.skips_line || size > MAX_LINE_BYTES || self.is_full {
                // What comes before it is shown first, so that the number is where the gap is.
                self.show(&std::mem::take(&mut text));
                self.left_out += size as u64;
                self.line.clear();
                self.skips_line = !is_complete;
                continue;
            }
            self.line.extend_from_slice(part);
            if is_complete {
                text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.line)));
            }
        }
        if self.line.is_empty() {
            self.waits_since = None;
        }
        self.show(&text);
    }

    fn show(&mut self, text: &str) {
        if !text.is_empty() {
            self.shown += text.len();
            self.observer.output(self.stream, text, std::mem::take(&mut self.left_out));
        }
    }

    pub(crate) fn finish(mut self) {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        self.show(&rest);
        if self.left_out > 0 {
            self.observer.output(self.stream, "", self.left_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Shown(Mutex<Vec<(String, u64)>>);

    impl OutputObserver for Shown {
        fn output(&self, _: OutputStream, text: &str, left_out: u64) {
            self.0.lock().unwrap().push((text.to_owned(), left_out));
        }
    }

    fn shown(pushes: &[(&[u8], u64)]) -> Vec<(String, u64)> {
        let observer = Shown::default();
        let mut lines = LiveLines::new(OutputStream::Stdout, &observer);
        let start = Instant::now();
        for (chunk, ms) in pushes {
            lines.push(chunk, start + Duration::from_millis(*ms));
        }
        lines.finish();
        observer.0.into_inner().unwrap()
    }

    #[test]
    fn complete_lines_are_shown_at_once_and_the_rest_at_the_end() {
        let all = shown(&[(b"a\nb\nc", 0), (b"d\n\n", 1), (b"e", 2)]);
        assert_eq!(all, [("a\nb\n".into(), 0), ("cd\n\n".into(), 0), ("e".into(), 0)]);
        // A character that arrives in two parts is not replaced, a byte that is none is.
        let (first, second) = "好\n".as_bytes().split_at(1);
        assert_eq!(shown(&[(first, 0), (second, 1), (b"\xff", 2)]), [("好\n".into(), 0), ("\u{fffd}".into(), 0)]);
    }

    #[test]
    fn a_long_line_is_left_out_and_counted() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let all = shown(&[(b"a\n", 0), (&long, 0), (b"yz\nb\n", 0), (&long, 0)]);
        let size = long.len() as u64;
        assert_eq!(all, [("a\n".into(), 0), ("b\n".into(), size + 3), (String::new(), size)]);
    }

    #[test]
    fn more_than_can_be_read_is_left_out_until_the_next_window() {
        let much = b"0123456789abcde\n".repeat(MAX_WINDOW_BYTES / 8);
        let all = shown(&[(&much, 0), (&much, 100), (b"end\n", 600)]);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].0.len(), all[0].1), (MAX_WINDOW_BYTES, 0));
        assert_eq!(all[1], ("end\n".into(), (2 * much.len() - MAX_WINDOW_BYTES) as u64));
    }

    #[cfg(feature = "jupyter")]
    #[test]
    fn an_unfinished_line_is_passed_on_when_it_has_waited_and_continued_later() {
        let observer = Shown::default();
        let mut lines = LiveLines::with_updates(OutputStream::Stdout, &observer);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(lines.due(), None);
        lines.push(b"a\npart", at(0));
        lines.push(b"ial", at(200));
        assert_eq!(lines.due(), Some(at(300)), "more of the line does not delay it");
        lines.pass_on(at(299));
        lines.pass_on(at(300));
        assert_eq!(lines.due(), None);
        lines.push(b" and more\n\rstep 1", at(400));
        assert_eq!(lines.due(), Some(at(700)));
        lines.pass_on(at(700));
        lines.push(b"\rstep 2", at(800));
        lines.finish();
        let texts: Vec<String> = observer.0.into_inner().unwrap().into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, ["a\n", "partial", " and more\n\r", "step 1", "\r", "step 2"]);
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let captured = |chunks: &[&[u8]]| {
            let mut capture = Capture { half: 4, head: Vec::new(), tail: VecDeque::new(), dropped: 0 };
            chunks.iter().for_each(|chunk| capture.push(chunk));
            capture.finish()
        };
        let whole = captured(&[b"abc", b"defgh"]);
        assert_eq!((whole.bytes.as_slice(), whole.dropped, whole.tail.as_slice()), (&b"abcdefgh"[..], 0, &b""[..]));
        let cut = captured(&[b"abc", b"defgh", b"ijklmnopq"]);
        assert_eq!((cut.bytes.as_slice(), cut.dropped, cut.tail.as_slice()), (&b"abcd"[..], 9, &b"nopq"[..]));
        assert_eq!(cut.len(), 17);
    }
}
