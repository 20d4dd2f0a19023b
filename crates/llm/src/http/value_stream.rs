//! JSON values out of bytes as they arrive: one document, a list whose items come one by one, lines of values, or server-sent
//! events with values in them. Each byte is looked at once, wherever the pieces end, also inside of a character.

use std::collections::VecDeque;
use std::mem;

use serde_json::Value;

use crate::http::body::BodyError;
use crate::http::lines::LineBuffer;
use crate::http::sse::data_value;

pub const MOST_VALUE_BYTES: usize = 8 * 1024 * 1024;

pub const DEEPEST: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Alone(Value),
    Item(Value),
}

/// In which form the bytes come; it shows in the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    #[default]
    Unknown,
    /// Values, with white space or line ends between them.
    Json,
    Events,
}

#[derive(Clone, Copy, Debug, Default)]
enum Within {
    #[default]
    Nothing,
    /// A list or an object, so many levels deep.
    Nested(usize),
    Text,
    /// A number or a word that stands by itself.
    Word,
}

#[derive(Debug, Default)]
pub struct ValueStream {
    shape: Shape,
    lines: LineBuffer,
    value: Vec<u8>,
    within: Within,
    in_string: bool,
    escaped: bool,
    in_list: bool,
    done: bool,
    listed: bool,
    ready: VecDeque<StreamItem>,
}

impl ValueStream {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// What is no JSON, too deep or too large. The values before it can still be taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        let mut bytes = bytes;
        if self.shape == Shape::Unknown {
            let skipped = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            bytes = bytes.get(skipped..).unwrap_or_default();
            self.shape = match bytes.first() {
                None => return Ok(()),
                Some(b'<') => return Err(BodyError::Rubbish("it is a web page")),
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
        if self.lines.pending() > MOST_VALUE_BYTES { Err(BodyError::Flood(MOST_VALUE_BYTES)) } else { Ok(()) }
    }

    /// A line of an event stream: only `data` matters. Its lines may make one value together.
    fn end_line(&mut self) -> Result<(), BodyError> {
        let line = self.lines.line();
        let Some(data) = data_value(line).map(<[u8]>::to_vec) else {
            let known = line.trim_ascii().is_empty() || line.first().is_some_and(|first| b":eir".contains(first));
            return if known { Ok(()) } else { Err(BodyError::Rubbish("it is neither JSON nor events")) };
        };
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        // A line's end is white space between two values, and ends a number.
        self.scan(&data)?;
        self.scan(b"\n")
    }

    fn scan(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        for byte in bytes {
            match self.within {
                Within::Nothing => self.begin(*byte)?,
                Within::Text | Within::Nested(_) => self.inside(*byte)?,
                Within::Word if matches!(byte, b',' | b']') || byte.is_ascii_whitespace() => {
                    self.end_value()?;
                    self.begin(*byte)?;
                }
                Within::Word => self.value.push(*byte),
            }
            if self.value.len() > MOST_VALUE_BYTES {
                return Err(BodyError::Flood(MOST_VALUE_BYTES));
            }
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), BodyError> {
        match byte {
            b'[' if !self.in_list => {
                (self.in_list, self.listed) = (true, true);
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
        self.within = match byte {
            b'{' | b'[' => Within::Nested(1),
            b'"' => Within::Text,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Within::Word,
            _ => return Err(BodyError::Rubbish("it is not JSON")),
        };
        self.in_string = byte == b'"';
        self.value.push(byte);
        Ok(())
    }

    fn inside(&mut self, byte: u8) -> Result<(), BodyError> {
        self.value.push(byte);
        if self.in_string {
            match byte {
                _ if mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    if matches!(self.within, Within::Text) {
                        return self.end_value();
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        let Within::Nested(depth) = self.within else { return Ok(()) };
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' if depth >= DEEPEST => return Err(BodyError::Rubbish("it is nested too deeply")),
            b'{' | b'[' => self.within = Within::Nested(depth + 1),
            b'}' | b']' if depth == 1 => return self.end_value(),
            b'}' | b']' => self.within = Within::Nested(depth - 1),
            _ => {}
        }
        Ok(())
    }

    fn end_value(&mut self) -> Result<(), BodyError> {
        self.within = Within::Nothing;
        let bytes = mem::take(&mut self.value);
        let value = serde_json::from_slice(&bytes).map_err(|_| BodyError::Rubbish("it is not JSON"))?;
        self.ready.push_back(if self.in_list { StreamItem::Item(value) } else { StreamItem::Alone(value) });
        Ok(())
    }

    pub fn take(&mut self) -> Option<StreamItem> {
        self.ready.pop_front()
    }

    pub const fn is_done(&self) -> bool {
        self.done
    }

    pub const fn has_list(&self) -> bool {
        self.listed
    }

    /// That no more bytes come; what is left can still be taken.
    ///
    /// # Errors
    /// When a value or the outermost list is not at its end, or nothing came at all.
    pub fn end(&mut self) -> Result<(), BodyError> {
        if self.lines.pending() > 0 {
            self.end_line()?;
        }
        match self.within {
            Within::Word => self.end_value()?,
            Within::Nothing => {}
            Within::Text | Within::Nested(_) => return Err(BodyError::CutOff),
        }
        if self.shape == Shape::Unknown {
            return Err(BodyError::Rubbish("it is empty"));
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

    /// What comes, and whether by itself or in a list.
    const FORMS: [(&str, bool); 12] = [
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
    fn values_come_out_of_every_form_wherever_the_pieces_end() {
        for (form, in_list) in FORMS {
            let of = |text: &str| {
                if in_list { StreamItem::Item(json!({"a": text})) } else { StreamItem::Alone(json!({"a": text})) }
            };
            let expected = (vec![of("一"), of("二")], Ok(()));
            let bytes = form.as_bytes();
            assert_eq!(read(&[bytes]), expected, "{form}");
            assert_eq!(read(&bytes.chunks(1).collect::<Vec<_>>()), expected, "byte by byte: {form}");
            for cut in 0..bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(read(&[head, tail]), expected, "cut at {cut}: {form}");
            }
        }
    }

    #[test]
    fn brackets_and_quotes_in_texts_and_values_of_any_kind_are_no_end() {
        let tricky = json!({"a": "} ] \" \\ {[", "b": {"c": [[1], {"d": null}]}});
        assert_eq!(read(&[tricky.to_string().as_bytes()]).0, [StreamItem::Alone(tricky)]);
        let (items, ended) = read(&[br#"[7, "x\"]", null, [1, [2]], true, -1.5e3]"#]);
        let expected = [json!(7), json!("x\"]"), json!(null), json!([1, [2]]), json!(true), json!(-1500.0)];
        assert_eq!((items, ended), (expected.map(StreamItem::Item).to_vec(), Ok(())));
        assert_eq!(read(&[b"true"]), (vec![StreamItem::Alone(json!(true))], Ok(())));
    }

    #[test]
    fn what_is_cut_off_keeps_what_came_before() {
        let first = || vec![StreamItem::Alone(json!({"a": 1}))];
        for (cut, came) in [
            ("{\"a\": 1}\n{\"a\": ", first()),
            ("{\"a\": 1}\n{\"a\": \"b", first()),
            ("data: {\"a\": 1}\n\ndata: {\"a\"", first()),
            ("[{\"a\": 1}", vec![StreamItem::Item(json!({"a": 1}))]),
            ("[", vec![]),
        ] {
            assert_eq!(read(&[cut.as_bytes()]), (came, Err(BodyError::CutOff)), "{cut}");
        }
    }

    #[test]
    fn rubbish_is_no_value() {
        let deep = "[".repeat(DEEPEST + 2);
        let rubbish: [&[u8]; 9] = [
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
        for bytes in rubbish {
            let (_, ended) = read(&[bytes]);
            assert!(matches!(ended, Err(BodyError::Rubbish(_))), "{ended:?} of {}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_value_and_a_line_have_a_largest_size() {
        for begin in ["{\"a\": \"", "data: \"", ": "] {
            let mut values = ValueStream::default();
            values.feed(begin.as_bytes()).unwrap();
            let block = vec![b'x'; 1024 * 1024];
            let ended = (0..100).try_for_each(|_| values.feed(&block));
            assert_eq!(ended, Err(BodyError::Flood(MOST_VALUE_BYTES)), "{begin}");
        }
    }
}
