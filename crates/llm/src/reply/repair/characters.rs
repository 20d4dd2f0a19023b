//! The characters of near-JSON: what counts as punctuation, quote, white space, word.

/// The JSON punctuation that full-width punctuation stands for; every other character itself.
pub(super) const fn plain(c: char) -> char {
    match c {
        '｛' => '{',
        '｝' => '}',
        '［' => '[',
        '］' => ']',
        '：' => ':',
        '，' => ',',
        other => other,
    }
}

/// Whether `c` may stand around a text or key.
pub(super) const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '＂' | '“' | '”' | '‘' | '’' | '「' | '」' | '『' | '』')
}

/// The quote that closes what `open` opens; nothing when it opens nothing.
pub(super) const fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' | '＂' => Some(open),
        '“' => Some('”'),
        '‘' => Some('’'),
        '「' => Some('」'),
        '『' => Some('』'),
        _ => None,
    }
}

/// White space between tokens: JSON's, Unicode's, and characters without width.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}

pub(super) const fn is_json_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '+')
}
