//! Incremental parsing of JSON values: one document, a list with separate items, lines of values, or server-sent events with
//! values. Each byte is scanned once; pieces may end anywhere, even inside a character.

use std::collections::VecDeque;
use std::mem;

use serde_json::Value;

use crate::http::body::BodyError;
use crate::http::lines::LineBuffer;
use crate::http::sse::data_value;

pub const MAX_VALUE_BYTES: usize = 8 * 1024 * 1024;

pub const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Single(Value),
    Item(Value),
}

/// The format of the stream, which the first byte determines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Unknown,
    /// Values separated by white space or line ends.
    Json,
    Events,
}

#[derive(Clone, Copy, Debug, Default)]
enum Position {
    #[default]
    Nothing,
    /// A list or an object, with the current depth.
    Nested(usize),
    Text,
    /// A number or literal outside a list or object.
    Word,
}

#[derive(Debug, Default)]
pub struct ValueStream {
    shape: Shape,
    lines: LineBuffer,
    value: Vec<u8>,
    position: Position,
    in_string: bool,
    escaped: bool,
    in_list: bool,
    done: bool,
    has_list: bool,
    ready: VecDeque<StreamItem>,
}

impl ValueStream {
    /// Parses the next bytes.
    ///
    /// # Errors
    /// When the input is not JSON, too deep or too large. Earlier values can still be taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        let mut bytes = bytes;
        if self.shape == Shape::Unknown {
            let skipped = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            bytes = bytes.get(skipped..).unwrap_or_default();
            self.shape = match bytes.first() {
                None => return Ok(()),
                Some(b'<') => return Err(BodyError::Invalid("it is a web page")),
                Some(b'd' | b'e' | b'i' | b'r' | b':') => Shape::Events,
                Some(_) => Shape::Json,
            };
        }
        if self.shape == Shape::Json {
            return self.scan(bytes);
        }
        while self.lines.take(&mut bytes) {
            self.end_line()?;
        }
        if self.lines.pending() > MAX_VALUE_BYTES { Err(BodyError::TooLarge(MAX_VALUE_BYTES)) } else { Ok(()) }
    }

    /// Handles a line of an event stream. Only `data` lines are used; several of them may form one value.
    fn end_line(&mut self) -> Result<(), BodyError> {
        let line = self.lines.line();
        let Some(data) = data_value(line).map(<[u8]>::to_vec) else {
            let known = line.trim_ascii().is_empty() || line.first().is_some_and(|first| b":eir".contains(first));
            return if known { Ok(()) } else { Err(BodyError::Invalid("it is neither JSON nor events")) };
        };
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        // A line end is white space between two values; it also terminates a number.
        self.scan(&data)?;
        self.scan(b"\n")
    }

    fn scan(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        for byte in bytes {
            match self.position {
                Position::Nothing => self.start_value(*byte)?,
                Position::Text | Position::Nested(_) => self.continue_value(*byte)?,
                Position::Word if matches!(byte, b',' | b']') || byte.is_ascii_whitespace() => {
                    self.end_value()?;
                    self.start_value(*byte)?;
                }
                Position::Word => self.value.push(*byte),
            }
            if self.value.len() > MAX_VALUE_BYTES {
                return Err(BodyError::TooLarge(MAX_VALUE_BYTES));
            }
        }
        Ok(())
    }

    fn start_value(&mut self, byte: u8) -> Result<(), BodyError> {
        match byte {
            b'[' if !self.in_list => {
                (self.in_list, self.has_list) = (true, true);
                return Ok(());
            }
            b']' if self.in_list => {
                self.in_list = false;
                return Ok(());
            }
            b',' if self.in_list => return Ok(()),
            byte if byte.is_ascii_whitespace() => return Ok(()),
            _ => {}
        }
        self.position = match byte {
            b'{' | b'[' => Position::Nested(1),
            b'"' => Position::Text,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Position::Word,
            _ => return Err(BodyError::Invalid("it is not JSON")),
        };
        self.in_string = byte == b'"';
        self.value.push(byte);
        Ok(())
    }

    fn continue_value(&mut self, byte: u8) -> Result<(), BodyError> {
        self.value.push(byte);
        if self.in_string {
            match byte {
                _ if mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    if matches!(self.position, Position::Text) {
                        return self.end_value();
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        let Position::Nested(depth) = self.position else { return Ok(()) };
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' if depth >= MAX_DEPTH => return Err(BodyError::Invalid("it is nested too deeply")),
            b'{' | b'[' => self.position = Position::Nested(depth + 1),
            b'}' | b']' if depth == 1 => return self.end_value(),
            b'}' | b']' => self.position = Position::Nested(depth - 1),
            _ => {}
        }
        Ok(())
    }

    fn end_value(&mut self) -> Result<(), BodyError> {
        self.position = Position::Nothing;
        let bytes = mem::take(&mut self.value);
        let value = serde_json::from_slice(&bytes).map_err(|_| BodyError::Invalid("it is not JSON"))?;
        self.ready.push_back(if self.in_list { StreamItem::Item(value) } else { StreamItem::Single(value) });
        Ok(())
    }

    pub fn take(&mut self) -> Option<StreamItem> {
        self.ready.pop_front()
    }

    pub const fn is_done(&self) -> bool {
        self.done
    }

    pub const fn has_list(&self) -> bool {
        self.has_list
    }

    /// Ends the input. The remaining values can still be taken.
    ///
    /// # Errors
    /// When a value or the outermost list is incomplete, or the input is empty.
    pub fn end(&mut self) -> Result<(), BodyError> {
        if self.lines.pending() > 0 {
            self.end_line()?;
        }
        match self.position {
            Position::Word => self.end_value()?,
            Position::Nothing => {}
            Position::Text | Position::Nested(_) => return Err(BodyError::CutOff),
        }
        if self.shape == Shape::Unknown {
            return Err(BodyError::Invalid("it is empty"));
        }
        if self.in_list { Err(BodyError::CutOff) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<StreamItem>, Result<(), BodyError>) {
        let mut values = ValueStream::default();
        let ended = pieces.iter().try_for_each(|piece| values.feed(piece)).and_then(|()| values.end());
        (std::iter::from_fn(|| values.take()).collect(), ended)
    }

    /// The input, and whether its values are items of a list.
    const FORMATS: [(&str, bool); 12] = [
        ("{\"a\": \"一\"}\n{\"a\": \"二\"}\n", false),
        ("{\"a\":\"一\"}{\"a\":\"二\"}", false),
        ("\r\n {\n \"a\": \"一\"\n}\r\n\r\n{\"a\": \"二\"}", false),
        ("data: {\"a\": \"一\"}\n\ndata: {\"a\": \"二\"}\n\ndata: [DONE]\n\n", false),
        ("event: action\nid: 1\ndata:{\"a\":\"一\"}\r\n\r\n: still there\ndata:{\"a\":\"二\"}", false),
        (": hello\n\ndata: {\ndata: \"a\": \"一\"\ndata: }\n\nretry: 5\ndata: {\"a\": \"二\"}\n", false),
        ("[{\"a\": \"一\"}, {\"a\": \"二\"}]", true),
        ("[\n{\"a\":\"一\"}\n,{\"a\":\"二\"}\n]\n", true),
        ("data: [{\"a\": \"一\"},\n\ndata: {\"a\": \"二\"}]\n\n", true),
        ("{\"a\": \"\\u4e00\"}\n{\"a\": \"二\"}", false),
        ("[{\"a\":\"一\"}]\n[{\"a\":\"二\"}]", true),
        ("\n\n{\"a\":\"一\"}\n\n\n{\"a\":\"二\"}\n\n", false),
    ];

    #[test]
    fn values_are_read_from_every_format_regardless_of_piece_boundaries() {
        for (format, in_list) in FORMATS {
            let item = |text: &str| {
                if in_list { StreamItem::Item(json!({"a": text})) } else { StreamItem::Single(json!({"a": text})) }
            };
            let expected = (vec![item("一"), item("二")], Ok(()));
            let bytes = format.as_bytes();
            assert_eq!(read(&[bytes]), expected, "{format}");
            assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), expected, "byte by byte: {format}");
            for cut in 0..bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(read(&[head, tail]), expected, "cut at {cut}: {format}");
            }
        }
    }

    #[test]
    fn brackets_and_quotes_inside_values_do_not_end_them() {
        let tricky = json!({"a": "} ] \" \\ {[", "b": {"c": [[1], {"d": null}]}});
        assert_eq!(read(&[tricky.to_string().as_bytes()]).0, [StreamItem::Single(tricky)]);
        let (items, ended) = read(&[br#"[7, "x\"]", null, [1, [2]], true, -1.5e3]"#]);
        let expected = [json!(7), json!("x\"]"), json!(null), json!([1, [2]]), json!(true), json!(-1500.0)];
        assert_eq!((items, ended), (expected.map(StreamItem::Item).to_vec(), Ok(())));
        assert_eq!(read(&[b"true"]), (vec![StreamItem::Single(json!(true))], Ok(())));
    }

    #[test]
    fn values_before_a_cut_are_returned() {
        let first = || vec![StreamItem::Single(json!({"a": 1}))];
        for (cut, received) in [
            ("{\"a\": 1}\n{\"a\": ", first()),
            ("{\"a\": 1}\n{\"a\": \"b", first()),
            ("data: {\"a\": 1}\n\ndata: {\"a\"", first()),
            ("[{\"a\": 1}", vec![StreamItem::Item(json!({"a": 1}))]),
            ("[", vec![]),
        ] {
            assert_eq!(read(&[cut.as_bytes()]), (received, Err(BodyError::CutOff)), "{cut}");
        }
    }

    #[test]
    fn invalid_input_is_rejected() {
        let deep = "[".repeat(MAX_DEPTH + 2);
        let invalid: [&[u8]; 9] = [
            b"",
            b" \n",
            b"I would rather not",
            b"<html>",
            b"data: x\n\n",
            b"{\"a\": \"\xff\"}",
            b"{a: 1}",
            b"data: {}\n\nnonsense\n",
            deep.as_bytes(),
        ];
        for bytes in invalid {
            let (_, ended) = read(&[bytes]);
            assert!(matches!(ended, Err(BodyError::Invalid(_))), "{ended:?} of {}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn values_and_lines_have_a_size_limit() {
        for prefix in ["{\"a\": \"", "data: \"", ": "] {
            let mut values = ValueStream::default();
            values.feed(prefix.as_bytes()).unwrap();
            let block = vec![b'x'; 1024 * 1024];
            let ended = (0..100).try_for_each(|_| values.feed(&block));
            assert_eq!(ended, Err(BodyError::TooLarge(MAX_VALUE_BYTES)), "{prefix}");
        }
    }
}
