//! Extracts the string literals of a Rust file that may be shown to a person.

use std::ops::Range;

use crate::rust_source::{block_comment, is_character, quoted, raw_string, test_items, without_comments_and_literals};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The literals outside of comments, test code, logs and attributes. Of attributes, `#[error("…")]` is a message.
pub(crate) fn literals(text: &str) -> Vec<Literal> {
    let code = without_comments_and_literals(text);
    let (mut skipped, _) = test_items(&code);
    skipped.extend(
        delimited_ranges(&code, "#[", b'[', b']')
            .into_iter()
            .filter(|range| !code[range.clone()].starts_with("#[error(")),
    );
    for log in ["trace!(", "debug!(", "info!(", "warn!(", "error!("] {
        skipped.extend(delimited_ranges(&code, log, b'(', b')'));
    }
    let mut found = all(text);
    found.retain(|(at, _)| !skipped.iter().any(|range| range.contains(at)));
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    found.into_iter().map(|(at, text)| Literal { line: line(at), text }).collect()
}

/// Whether a literal is prose: at least two words, or one word next to a placeholder. Text in backticks is code.
pub(crate) fn is_prose(text: &str) -> bool {
    let mut prose = String::new();
    let (mut code, mut depth) = (false, 0_usize);
    for c in text.trim().chars() {
        match c {
            '`' => code = !code,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if !code && depth == 0 => prose.push(c),
            _ => {}
        }
    }
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation() || "…–「」".contains(c));
        word.len() > 2 && word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '\''))
    };
    text.trim().contains([' ', '\n']) && prose.split_whitespace().any(is_word)
}

/// Every literal with its position.
fn all(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += block_comment(rest);
        } else if let Some(hashes) = raw_string(bytes, at) {
            let open = at + 2 + hashes;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = text[open..].find(&close).map_or(text.len(), |length| open + length);
            found.push((at, text[open..end].to_owned()));
            at = end + close.len();
        } else if rest[0] == b'"' {
            let end = at + quoted(rest, b'"');
            if at == 0 || bytes[at - 1] != b'b' {
                found.push((at, unescaped(&text[at + 1..end - 1])));
            }
            at = end;
        } else if rest[0] == b'\'' && is_character(text, at) {
            at += quoted(rest, b'\'');
        } else {
            at += 1;
        }
    }
    found
}

/// The value of a quoted literal, with its escapes resolved.
fn unescaped(written: &str) -> String {
    let mut text = String::new();
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('0') => text.push('\0'),
            Some('x') => {
                let code: String = rest.by_ref().take(2).collect();
                text.extend(u8::from_str_radix(&code, 16).ok().map(char::from));
            }
            Some('u') => {
                let code: String = rest.by_ref().skip(1).take_while(|c| *c != '}').filter(|c| *c != '_').collect();
                text.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            // A line that continues on the next one, after its indentation.
            Some('\n') => rest = rest.as_str().trim_start().chars(),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

/// The ranges that start with `mark`, whose last byte is the opening bracket, up to the closing bracket.
fn delimited_ranges(code: &str, mark: &str, open: u8, close: u8) -> Vec<Range<usize>> {
    let ranges = code.match_indices(mark).map(|(start, _)| {
        let mut depth = 0_usize;
        for (at, byte) in code.bytes().enumerate().skip(start) {
            if byte == open {
                depth += 1;
            } else if byte == close {
                depth -= 1;
                if depth == 0 {
                    return start..at + 1;
                }
            }
        }
        start..code.len()
    });
    ranges.collect()
}
