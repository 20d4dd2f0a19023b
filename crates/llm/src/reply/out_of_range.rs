//! Numbers of a reply that are beyond the range of floats, such as `1e400`: `serde_json` rejects the whole text because of one. They
//! are read as texts, as in a script, so that only the field is wrong, and the others are not lost.

use memchr::memchr2;

/// The JSON text with quotes around the numbers that are out of range; `None` if there are none.
pub(crate) fn quoted(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut output = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                loop {
                    // A string that does not end: this is not JSON.
                    at += memchr2(b'"', b'\\', bytes.get(at..)?)? + 1;
                    if bytes.get(at - 1) == Some(&b'"') {
                        break;
                    }
                    at += 1;
                }
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes.get(at..)?.iter().take_while(is_part).count();
                let number = json.get(at..end)?;
                if number.parse::<f64>().is_ok_and(f64::is_infinite) {
                    output.push_str(json.get(copied..at)?);
                    output.push('"');
                    output.push_str(number);
                    output.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    output.push_str(json.get(copied..)?);
    (copied > 0).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_are_out_of_range_become_texts() {
        assert_eq!(
            quoted(r#"{"a\"1e400":[1e400,-1E+999,1e300],"b":"1e400"}"#).as_deref(),
            Some(r#"{"a\"1e400":["1e400","-1E+999",1e300],"b":"1e400"}"#)
        );
        for json in [r#"{"a":1.5,"b":"1e400"}"#, r#""\"#, r#"{"a":"1e400"#, "-", ""] {
            assert_eq!(quoted(json), None, "{json}");
        }
    }
}
