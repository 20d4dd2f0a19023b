//! Decodes the content of a JSON string character by character.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnescapeStep {
    Char(char),
    More,
    End,
    /// Not a valid JSON string: a control character, an unknown escape, or a lone surrogate.
    Invalid,
}

/// The decoder state between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unescape {
    /// The incomplete escape, or two escapes if the first is the first half of a surrogate pair.
    escape: [u8; 12],
    length: usize,
}

impl Unescape {
    /// Whether no escape has begun.
    pub(crate) fn is_between_characters(self) -> bool {
        self.length == 0
    }

    /// Processes the next character after the opening quote.
    pub(crate) fn step(&mut self, c: char) -> UnescapeStep {
        if self.length == 0 && c != '\\' {
            return match c {
                '"' => UnescapeStep::End,
                '\0'..='\u{1f}' => UnescapeStep::Invalid,
                _ => UnescapeStep::Char(c),
            };
        }
        let valid = match self.length {
            0 | 6 => c == '\\',
            1 => c.is_ascii(),
            7 => c == 'u',
            _ => c.is_ascii_hexdigit(),
        };
        let (Some(slot), Ok(byte), true) = (self.escape.get_mut(self.length), u8::try_from(c), valid) else {
            return UnescapeStep::Invalid;
        };
        *slot = byte;
        self.length += 1;
        if !(self.length == 6 || self.length == 12 || (self.length == 2 && c != 'u')) {
            return UnescapeStep::More;
        }
        let written = self.escape.get(..self.length).and_then(|escape| std::str::from_utf8(escape).ok());
        let written = written.unwrap_or_default();
        match serde_json::from_str(&format!("\"{written}\"")) {
            Ok(c) => {
                self.length = 0;
                UnescapeStep::Char(c)
            }
            Err(_) if self.length == 6 && is_first_half(written) => UnescapeStep::More,
            Err(_) => UnescapeStep::Invalid,
        }
    }
}

/// Whether `\uXXXX` is the first half of a surrogate pair.
fn is_first_half(escape: &str) -> bool {
    let unit = escape.get(2..).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    unit.is_some_and(|unit| (0xD800..0xDC00).contains(&unit))
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
                UnescapeStep::Char(c) => text.push(c),
                UnescapeStep::More => {}
                UnescapeStep::End => return Some(text),
                UnescapeStep::Invalid => return None,
            }
        }
        None
    }

    #[test]
    fn every_escape_is_decoded_and_invalid_ones_are_rejected() {
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
        fn it_decodes_every_string_that_serde_decodes(body in r#"([ -~]|\\[ux"\\/bfnrt]|\\u[dD][89a-fA-F][0-9a-f]{2}|[一-龥]|\PC){0,20}"#) {
            let string = format!("\"{body}\"");
            if let Ok(expected) = serde_json::from_str::<String>(&string) {
                prop_assert_eq!(decode(&string), Some(expected));
            }
        }
    }
}
