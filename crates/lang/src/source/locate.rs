//! Maps characters of a scalar's decoded text to their positions in the file.
//!
//! The scalar is decoded again by the rules of `granit-parser`, and every decoded character is compared with the tree's text.
//! At the first difference the position is unknown, so a gap in these rules can never point to a wrong position.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{Scalar, ScalarStyle, YamlNode};

/// The position in the file of the characters `within` of a scalar's decoded text (after block scalars, folding and escapes
/// are decoded). Returns the node's own span if the position is unknown: `within` exceeds the text, the node is not a scalar,
/// or it belongs to another file. An empty range gives a point.
///
/// `within` counts **characters**; [`locate_bytes`] takes bytes of the decoded text, which is what minijinja reports.
pub fn locate(file: &SourceFile, node: &YamlNode, within: Range<usize>) -> Span {
    let Some(scalar) = node.as_scalar() else { return node.span };
    let ends = scalar.text.char_indices().map(|(byte, _)| byte).chain([scalar.text.len()]);
    let byte = |character: usize| ends.clone().nth(character);
    match (byte(within.start), byte(within.end)) {
        (Some(start), Some(end)) => locate_bytes(file, node, start..end),
        _ => node.span,
    }
}

/// Like [`locate()`], for a range of bytes of the decoded text. A byte inside a character counts as its start.
pub fn locate_bytes(file: &SourceFile, node: &YamlNode, within: Range<usize>) -> Span {
    find(file, node, &within).unwrap_or(node.span)
}

fn find(file: &SourceFile, node: &YamlNode, within: &Range<usize>) -> Option<Span> {
    let scalar = node.as_scalar()?;
    if within.end > scalar.text.len() {
        return None;
    }
    let [start, end] = [within.start, within.end].map(|byte| scalar.text.floor_char_boundary(byte));
    let key = ScalarKey { span: node.span, text: (scalar.text.as_ptr().addr(), scalar.text.len()) };
    let decoded = file.last_located().of(key, || DecodedScalar::new(file.text(), node.span, scalar));
    if start == decoded.length && decoded.is_complete {
        // After the last character there is a position, but no character to mark.
        return Some(Span::point(
            decoded.pieces.last().map_or_else(|| end_of_text(scalar.style, node.span), |last| last.to),
        ));
    }
    let from = decoded.start_of(start)?;
    if start >= end {
        return Some(Span::point(from));
    }
    Some(Span::new(from, decoded.end_before(end)?))
}

/// What tells a scalar from others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ScalarKey {
    span: Span,
    /// Where its decoded text is in memory, and how long it is: a node of another file may have the same span.
    text: (usize, usize),
}

/// The scalar of a file that was located last: positions in one text are often asked for one after the other.
#[derive(Default)]
pub(crate) struct LastLocated(Mutex<Option<(ScalarKey, Arc<DecodedScalar>)>>);

impl LastLocated {
    fn of(&self, key: ScalarKey, decode: impl FnOnce() -> DecodedScalar) -> Arc<DecodedScalar> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, decoded)) if *known == key => Arc::clone(decoded),
            _ => {
                let decoded = Arc::new(decode());
                *last = Some((key, Arc::clone(&decoded)));
                decoded
            }
        }
    }
}

/// A part of a decoded text, and where it is in the file. If both have the same length, each byte is at the same place in both.
struct Piece {
    /// Its first byte in the decoded text.
    decoded: usize,
    length: usize,
    from: usize,
    to: usize,
}

impl Piece {
    fn is_copied(&self) -> bool {
        self.to - self.from == self.length
    }
}

/// Where the decoded text of a scalar is in the file, up to the first difference.
struct DecodedScalar {
    pieces: Vec<Piece>,
    /// The length of what is known, in bytes.
    length: usize,
    /// Whether this is the whole text.
    is_complete: bool,
}

impl DecodedScalar {
    fn new(text: &str, span: Span, scalar: &Scalar) -> Self {
        let mut trace = Trace { expected: scalar.text.chars(), length: 0, pieces: vec![] };
        let decoded = trace.decode(text, span, scalar);
        let is_complete = decoded.is_some() && trace.expected.next().is_none();
        Self { pieces: trace.pieces, length: trace.length, is_complete }
    }

    fn piece(&self, byte: usize) -> Option<&Piece> {
        let after = self.pieces.partition_point(|piece| piece.decoded <= byte);
        self.pieces.get(after.checked_sub(1)?).filter(|piece| byte < piece.decoded + piece.length)
    }

    /// Where the character is in the file that starts at this byte.
    fn start_of(&self, byte: usize) -> Option<usize> {
        let piece = self.piece(byte)?;
        Some(piece.from + if piece.is_copied() { byte - piece.decoded } else { 0 })
    }

    /// Where the character ends in the file that ends before this byte.
    fn end_before(&self, byte: usize) -> Option<usize> {
        let piece = self.piece(byte.checked_sub(1)?)?;
        Some(if piece.is_copied() { piece.from + (byte - piece.decoded) } else { piece.to })
    }
}

/// The text between the quotes.
fn between_quotes(text: &str, span: Span) -> Option<&str> {
    text.get(span.start + 1..span.end.checked_sub(1)?)
}

fn end_of_text(style: ScalarStyle, span: Span) -> usize {
    match style {
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => span.end.saturating_sub(1),
        _ => span.end,
    }
}

/// Follows the decoded characters, and collects where they are.
struct Trace<'a> {
    expected: std::str::Chars<'a>,
    /// The number of bytes of the decoded text that have been found.
    length: usize,
    pieces: Vec<Piece>,
}

impl Trace<'_> {
    fn decode(&mut self, text: &str, span: Span, scalar: &Scalar) -> Option<()> {
        match scalar.style {
            ScalarStyle::Plain => flow(self, text.get(span.range())?, span.start, None),
            ScalarStyle::SingleQuoted => flow(self, between_quotes(text, span)?, span.start + 1, Some('\'')),
            ScalarStyle::DoubleQuoted => flow(self, between_quotes(text, span)?, span.start + 1, Some('"')),
            ScalarStyle::Literal => block(self, text, span, false, &scalar.text),
            ScalarStyle::Folded => block(self, text, span, true, &scalar.text),
        }
    }

    /// Adds the next decoded character, from the bytes `from..to` of the file. `None` ends the search: a difference.
    fn put(&mut self, decoded: char, from: usize, to: usize) -> Option<()> {
        if self.expected.next()? != decoded {
            return None;
        }
        let piece = Piece { decoded: self.length, length: decoded.len_utf8(), from, to };
        self.length += piece.length;
        match self.pieces.last_mut() {
            Some(last) if last.is_copied() && piece.is_copied() && last.to == from => {
                last.length += piece.length;
                last.to = to;
            }
            _ => self.pieces.push(piece),
        }
        Some(())
    }
}

/// Plain and quoted scalars: line folding, and the escapes of `quote`. `base` is the start of `raw` in the file.
fn flow(trace: &mut Trace<'_>, raw: &str, base: usize, quote: Option<char>) -> Option<()> {
    let mut at = 0;
    while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
        let next = rest.chars().next()?;
        if matches!(next, ' ' | '\t' | '\n' | '\r') {
            let blank = rest.find(|c| !matches!(c, ' ' | '\t')).unwrap_or(rest.len());
            if rest.get(blank..).is_some_and(|tail| tail.starts_with(['\n', '\r'])) {
                let length = rest.find(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).unwrap_or(rest.len());
                fold(trace, rest.get(..length)?, base + at)?;
                at += length;
                continue;
            }
        }
        let width = match (quote, next) {
            (Some('\''), '\'') => {
                trace.put('\'', base + at, base + at + 2)?;
                2
            }
            (Some('"'), '\\') => escape(trace, rest, base + at)?,
            _ => {
                trace.put(next, base + at, base + at + next.len_utf8())?;
                next.len_utf8()
            }
        };
        at += width;
    }
    Some(())
}

/// White space with at least one line break: one break becomes a space, several become one break less.
fn fold(trace: &mut Trace<'_>, blank: &str, from: usize) -> Option<()> {
    let to = from + blank.len();
    match count_breaks(blank) {
        1 => trace.put(' ', from, to),
        count => (1..count).try_for_each(|_| trace.put('\n', from, to)),
    }
}

fn count_breaks(text: &str) -> usize {
    let pairs = text.matches("\r\n").count();
    text.matches(['\n', '\r']).count() - pairs
}

/// An escape of a double-quoted scalar at the start of `rest`; returns its length in bytes.
fn escape(trace: &mut Trace<'_>, rest: &str, from: usize) -> Option<usize> {
    let kind = rest.chars().nth(1)?;
    if matches!(kind, '\n' | '\r') {
        // An escaped break disappears with the white space after it; further breaks remain.
        let tail = rest.get(1..)?;
        let length = tail.find(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).unwrap_or(tail.len());
        let to = from + 1 + length;
        (1..count_breaks(tail.get(..length)?)).try_for_each(|_| trace.put('\n', from, to))?;
        return Some(1 + length);
    }
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    let (decoded, length) = if digits > 0 {
        let code = |start: usize| u32::from_str_radix(rest.get(start..start + digits)?, 16).ok();
        match code(2)? {
            // A pair of surrogates, as JSON writes characters beyond the basic plane.
            high @ 0xd800..=0xdbff if digits == 4 => {
                let low = code(8)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                (char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?, 12)
            }
            code => (char::from_u32(code)?, 2 + digits),
        }
    } else {
        let decoded = match kind {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'e' => '\x1b',
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            other => other,
        };
        (decoded, 1 + kind.len_utf8())
    };
    trace.put(decoded, from, from + length)?;
    Some(length)
}

/// Block scalars: the indentation is the column of the first character; `folded` joins lines.
fn block(trace: &mut Trace<'_>, text: &str, span: Span, folded: bool, decoded: &str) -> Option<()> {
    let before = text.get(..span.start)?;
    let line_start = before.rfind(['\n', '\r']).map_or(0, |position| position + 1);
    let indent = span.start - line_start;
    // Empty lines above the first character are before the span.
    let leading = decoded.chars().take_while(|c| *c == '\n').count();
    (0..leading).try_for_each(|_| trace.put('\n', span.start, span.start))?;

    let mut at = span.start;
    // The break before the current line: its position, if there is one, and the number of empty lines after it.
    let (mut pending, mut empty) = (None::<(usize, usize)>, 0);
    let mut above_blank = false;
    loop {
        let rest = text.get(at..)?;
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let line = rest.get(..length)?;
        if let Some((from, to)) = pending {
            let starts_blank = line.starts_with([' ', '\t']);
            if !folded || above_blank || starts_blank {
                trace.put('\n', from, to)?;
            } else if empty == 0 {
                trace.put(' ', from, to)?;
            }
            (0..empty).try_for_each(|_| trace.put('\n', to, to))?;
        }
        above_blank = line.starts_with([' ', '\t']);
        for (offset, character) in line.char_indices() {
            trace.put(character, at + offset, at + offset + character.len_utf8())?;
        }
        let break_at = at + length;
        let mut next = break_at + break_length(text.get(break_at..)?);
        let break_end = next;
        empty = 0;
        // Skip the indentation of the next line, and the empty lines before it.
        loop {
            let rest = text.get(next..)?;
            let spaces = rest.bytes().take(indent).take_while(|byte| *byte == b' ').count();
            let after = rest.get(spaces..)?;
            if after.is_empty() || next >= span.end {
                // Only the line breaks at the end remain.
                let tail = trace.expected.as_str().chars().count();
                return (0..tail).try_for_each(|_| trace.put('\n', break_at, break_end));
            }
            next += spaces;
            match break_length(after) {
                0 if spaces < indent => return None,
                0 => break,
                width => {
                    next += width;
                    empty += 1;
                }
            }
        }
        pending = Some((break_at, break_end));
        at = next;
    }
}

/// The length of the line break that `text` starts with, 0 without one.
fn break_length(text: &str) -> usize {
    if text.starts_with("\r\n") { 2 } else { usize::from(text.starts_with(['\n', '\r'])) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::compose::parse;

    fn value(text: &str) -> (Arc<SourceFile>, Arc<YamlNode>) {
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let parsed = parse(&file);
        assert!(parsed.diagnostics.is_empty(), "{text:?}: {:?}", parsed.diagnostics);
        let node = Arc::clone(parsed.root.unwrap().get("k").unwrap());
        (file, node)
    }

    /// Scalars in all styles; the decoded text of each contains `好 x` once.
    const SCALARS: [&str; 22] = [
        "k: 你好 x 吗\n",
        "k: 你\n  你 好 x\n\n\n  吗\n",
        "k: '你''s 好 x'\n",
        "k: '你  \n\n  你\n   好 x'\n",
        "k: \"\\u4f60\\t\\x41\\U0001F600\\uD83D\\uDE00 好 x\\\"\"\n",
        "k: \"a\\\n    b \\\n\n   好 x\"\n",
        "k: \"a \n\n  b\\  \n  好 x\"\n",
        "k: |\n  你\n    好 x\n  吗\n",
        "k: |\n\n\n  你\n\n  好 x\n",
        "k: |2\n    你\n  好 x\n",
        "k: |-\n  你\n  好 x\n\n\nz: 1\n",
        "k: |+\n  好 x\n\n\nz: 1\n",
        "k: >\n  你\n  你\n\n  好 x\n",
        "k: >\n  你\n\n    more\n     more\n\n\n  back\n  好 x\n  吗\n\n# c\n",
        "k: >-\n  好 x\n",
        "k: >2\n    你\n  a\n  b 好 x\n",
        "k: |\r\n  你\r\n\r\n  好 x\r\n  吗\r\n",
        "k: >\r\n  你\r\n  你\r\n  好 x\r\n",
        "k: '你\r\n  好 x'\r\n",
        "\u{feff}k: |\n  你\n  好 x",
        "a: [1, &n \"\\n好 x\"]\nk: *n\n",
        "k:\n  \"你\n  好 x\"\n",
    ];

    #[test]
    fn every_character_of_every_style_is_located() {
        for text in SCALARS {
            let (file, node) = value(text);
            let decoded = &node.as_scalar().unwrap().text;
            let at = decoded.find("好 x").unwrap();
            let span = locate_bytes(&file, &node, at..at + "好 x".len());
            assert_eq!(file.slice(span), "好 x", "{text:?}");
            // Each character is found, in order and inside the file.
            let mut last = 0;
            for (index, character) in decoded.chars().enumerate() {
                let span = locate(&file, &node, index..index + 1);
                assert!(span.start >= last || character == '\n', "{text:?} {index}");
                last = span.start;
                let written = file.slice(span);
                if !character.is_whitespace() && !written.starts_with('\\') && written != "''" {
                    assert_eq!(written, character.to_string(), "{text:?} {index}");
                }
            }
            assert_ne!(locate(&file, &node, 0..decoded.chars().count()), Span::default());
        }
    }

    #[test]
    fn positions_between_characters_and_past_the_text_are_safe() {
        let (file, node) = value("k: '好a'\n");
        assert_eq!(locate(&file, &node, 1..1), Span::point(7));
        assert_eq!(locate(&file, &node, 2..2), Span::point(8));
        assert_eq!(locate(&file, &node, 0..3), node.span);
        assert_eq!(locate(&file, &node, 9..12), node.span);
        assert_eq!(locate_bytes(&file, &node, 0..99), node.span);
        // A byte inside a character is its start.
        assert_eq!(locate_bytes(&file, &node, 1..4), Span::new(4, 8));
        let (file, node) = value("k: ''\n");
        assert_eq!(locate(&file, &node, 0..0), Span::point(4));
        let (file, node) = value("k:\n");
        assert_eq!(locate(&file, &node, 0..0), Span::point(2));
        let (file, node) = value("k: [a]\n");
        assert_eq!(locate(&file, &node, 0..1), node.span);
    }

    #[test]
    fn a_node_of_another_file_gives_its_own_span() {
        let (_, node) = value("k: |\n  你\n  好\n");
        let other = SourceFile::new("b.yaml", "x\ny");
        assert_eq!(locate(&other, &node, 0..1), node.span);
    }
}
