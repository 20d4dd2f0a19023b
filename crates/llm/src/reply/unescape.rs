//! Decodes the inside of a JSON string character by character, as it arrives.

/// What one more character of a string gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A character of the text.
    Char(char),
    /// Nothing yet: an escape is open.
    More,
    /// The closing quote.
    End,
    /// Not a JSON string: a control character, an unknown escape, half a surrogate pair.
    Invalid,
}

/// Where a string stands between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unescape {
    state: State,
    /// The first half of a surrogate pair, while the second is awaited.
    high: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// After a backslash.
    Escape,
    /// Inside `\uXXXX`: how many digits have come, and their value.
    Unicode { digits: u8, value: u32 },
}

impl Unescape {
    /// Takes the next character after the opening quote.
    pub fn step(&mut self, c: char) -> Step {
        match self.state {
            State::Plain => match c {
                '\\' => self.wait(State::Escape),
                _ if self.high.is_some() => Step::Invalid,
                '"' => Step::End,
                '\0'..='\u{1f}' => Step::Invalid,
                _ => Step::Char(c),
            },
            State::Escape if c == 'u' => self.wait(State::Unicode { digits: 0, value: 0 }),
            State::Escape if self.high.is_some() => Step::Invalid,
            State::Escape => {
                self.state = State::Plain;
                match c {
                    '"' | '\\' | '/' => Step::Char(c),
                    'b' => Step::Char('\u{8}'),
                    'f' => Step::Char('\u{c}'),
                    'n' => Step::Char('\n'),
                    'r' => Step::Char('\r'),
                    't' => Step::Char('\t'),
                    _ => Step::Invalid,
                }
            }
            State::Unicode { digits, value } => {
                let Some(digit) = c.to_digit(16) else { return Step::Invalid };
                let value = value * 16 + digit;
                if digits < 3 {
                    return self.wait(State::Unicode { digits: digits + 1, value });
                }
                self.state = State::Plain;
                self.unit(value)
            }
        }
    }

    fn wait(&mut self, state: State) -> Step {
        self.state = state;
        Step::More
    }

    /// Takes a UTF-16 code unit.
    fn unit(&mut self, unit: u32) -> Step {
        match (self.high.take(), unit) {
            (None, 0xD800..=0xDBFF) => {
                self.high = Some(unit);
                Step::More
            }
            (Some(high), 0xDC00..=0xDFFF) => {
                char::from_u32(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00)).map_or(Step::Invalid, Step::Char)
            }
            (None, _) => char::from_u32(unit).map_or(Step::Invalid, Step::Char),
            (Some(_), _) => Step::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The decoded text of `string`, an opening quote included; `None` when it is invalid or not closed.
    fn decode(string: &str) -> Option<String> {
        let mut unescape = Unescape::default();
        let mut text = String::new();
        for c in string.strip_prefix('"')?.chars() {
            match unescape.step(c) {
                Step::Char(c) => text.push(c),
                Step::More => {}
                Step::End => return Some(text),
                Step::Invalid => return None,
            }
        }
        None
    }

    #[test]
    fn every_escape_is_decoded_and_nothing_else_is_one() {
        let strings = [
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u4f60\u597D""#,
            r#""\ud83d\ude00""#,
            r#""\uD83D\uDE00 你""#,
            r#""""#,
            r#""\u0000""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83dx""#,
            r#""\ud83d\n""#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\x41""#,
            r#""\u12g4""#,
            r#""\u12"#,
            "\"a\nb\"",
            "\"open",
        ];
        for string in strings {
            assert_eq!(decode(string), serde_json::from_str(string).ok(), "{string}");
        }
    }

    proptest! {
        #[test]
        fn it_decodes_what_serde_decodes(body in r#"([ -~]|\\[ux"\\/bfnrt]|\\u[dD][89a-fA-F][0-9a-f]{2}|[一-龥]|\PC){0,20}"#) {
            let string = format!("\"{body}\"");
            if let Ok(expected) = serde_json::from_str::<String>(&string) {
                prop_assert_eq!(decode(&string), Some(expected));
            }
        }
    }
}
