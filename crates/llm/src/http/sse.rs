//! Server-sent events, taken apart as their bytes arrive (HTML standard, section 9.2); only `data` is kept.
//!
//! A decoder of our own because of what a hostile or broken server may send: `eventsource-stream` scans an unfinished
//! line again with each chunk and copies its buffer with each line, so that a few hundred kilobytes of short lines keep
//! a core busy for seconds. This one looks at each byte once. It holds at most what it was fed: the reader bounds that.

use std::collections::VecDeque;

use crate::http::lines::LineBuffer;

#[derive(Debug, Default)]
pub struct SseDecoder {
    lines: LineBuffer,
    /// The data of the event that has not ended yet; `None` without a `data` line.
    data: Option<Vec<u8>>,
    ready: VecDeque<Vec<u8>>,
}

impl SseDecoder {
    /// Takes the next bytes; they may end anywhere, inside a line or a UTF-8 character.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while self.lines.take(&mut bytes) {
            self.end_line();
        }
    }

    /// The data of the next whole event, its lines joined by `\n`. It is empty, and only then, for a line that is no field and
    /// no text either: the standard passes over unknown fields, but bytes that no server writes mean that others are
    /// missing.
    pub fn next_data(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// What is left when the stream has ended: the data of an event whose closing blank line never came. The standard
    /// throws it away; servers that end without it are common.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        if self.lines.pending() > 0 {
            self.end_line();
        }
        self.data.filter(|data| !data.is_empty())
    }

    fn end_line(&mut self) {
        let line = self.lines.line();
        if line.is_empty() {
            self.ready.extend(self.data.take().filter(|data| !data.is_empty()));
        } else if let Some(value) = data_value(line) {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
        } else if simdutf8::basic::from_utf8(line).is_err() || memchr::memchr(0, line).is_some() {
            self.ready.push_back(Vec::new());
        }
    }
}

/// The value of a `data` line; `None` for every other field and for comments.
pub(crate) fn data_value(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    if value.is_empty() {
        return Some(value);
    }
    let value = value.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk);
            events.extend(std::iter::from_fn(|| decoder.next_data()));
        }
        events.extend(decoder.finish());
        events.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    const TABLE: [(&str, &[&str]); 13] = [
        ("data: 一\n\ndata: 二\n\n", &["一", "二"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("\u{FEFF}data: a\n\n", &["a"]),
        (": keepalive\n\ndata: a\n: more\ndata: b\n\n", &["a\nb"]),
        ("event: x\nid: 1\nretry: 5\ndata:a\n\n", &["a"]),
        ("data:  two spaces\n\n", &[" two spaces"]),
        ("database: no\ndatum: no\n\n", &[]),
        ("data\n\ndata:\n\n", &[]),
        ("data: {\ndata: }\n\n", &["{\n}"]),
        ("data: unfinished\n", &["unfinished"]),
        ("data: unfinished", &["unfinished"]),
        ("", &[]),
    ];

    #[test]
    fn events_come_out_as_the_standard_says() {
        for (stream, expected) in TABLE {
            assert_eq!(decode([stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_the_chunks_end() {
        for (stream, expected) in TABLE {
            let bytes = stream.as_bytes();
            assert_eq!(decode(bytes.chunks(1)), expected, "byte by byte: {stream:?}");
            for cut in 0..bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(decode([head, b"", tail]), expected, "cut at {cut}: {stream:?}");
            }
        }
    }

    #[test]
    fn a_line_that_no_stream_of_text_holds_is_noticed() {
        for (stream, garbled) in [
            (&b"data: x\n\n: \xE6\x82\xA8\nnew-field: y\n"[..], false),
            (b"da\xFFta: x\n", true),
            (b": \xE6\n", true),
            (b"data: x\n\0\n", true),
            // What is in the data is for others to judge.
            (b"data: \xFF\0\n\n", false),
        ] {
            let mut decoder = SseDecoder::default();
            decoder.feed(stream);
            let noticed = std::iter::from_fn(|| decoder.next_data()).any(|data| data.is_empty());
            assert_eq!(noticed, garbled, "{:?}", String::from_utf8_lossy(stream));
        }
    }

    #[test]
    fn a_million_tiny_lines_take_no_noticeable_time() {
        let stream = ":\n".repeat(1_000_000);
        assert!(decode(stream.as_bytes().chunks(400_000)).is_empty());
    }
}
