//! An incremental decoder for server-sent events (HTML standard, section 9.2); only `data` fields are returned.
//!
//! `eventsource-stream` is not used because a hostile or broken server can make it slow: it rescans an unfinished line with
//! each chunk and copies its buffer with each line, so that a few hundred kilobytes of short lines keep a core busy for
//! seconds. This decoder scans each byte once. It buffers at most its input, which the caller limits.

use std::collections::VecDeque;

use crate::http::lines::LineBuffer;

#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    lines: LineBuffer,
    /// The data of the incomplete event; `None` without a `data` line.
    data: Option<Vec<u8>>,
    ready: VecDeque<Vec<u8>>,
}

impl SseDecoder {
    /// Decodes the next bytes, which may end inside a line or a UTF-8 character.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while self.lines.take(&mut bytes) {
            self.end_line();
        }
    }

    /// The data of the next complete event, its lines joined by `\n`. It is empty only for a line that is not text: the
    /// standard ignores unknown fields, but invalid bytes mean that other bytes may be missing.
    pub(crate) fn next_data(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    /// The data of a last event without a closing blank line. The standard discards it, but many servers omit the blank line.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
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
    fn events_are_decoded_according_to_the_standard() {
        for (stream, expected) in TABLE {
            assert_eq!(decode([stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn chunk_boundaries_do_not_matter() {
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
    fn lines_that_are_not_text_are_reported() {
        for (stream, garbled) in [
            (&b"data: x\n\n: \xE6\x82\xA8\nnew-field: y\n"[..], false),
            (b"da\xFFta: x\n", true),
            (b": \xE6\n", true),
            (b"data: x\n\0\n", true),
            // The content of data fields is not checked here.
            (b"data: \xFF\0\n\n", false),
        ] {
            let mut decoder = SseDecoder::default();
            decoder.feed(stream);
            let reported = std::iter::from_fn(|| decoder.next_data()).any(|data| data.is_empty());
            assert_eq!(reported, garbled, "{:?}", String::from_utf8_lossy(stream));
        }
    }

    #[test]
    fn a_million_short_lines_are_decoded_quickly() {
        let stream = ":\n".repeat(1_000_000);
        assert!(decode(stream.as_bytes().chunks(400_000)).is_empty());
    }
}
