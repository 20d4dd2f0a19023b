//! The character classes of near-JSON: punctuation, quotes, white space, words.

/// Maps full-width punctuation to JSON punctuation; other characters are unchanged.
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

/// Whether `c` may enclose a string or key.
pub(super) const fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\''
            | '`'
            | '´'
            | '＂'
            | '“'
            | '”'
            | '„'
            | '‚'
            | '‘'
            | '’'
            | '「'
            | '」'
            | '『'
            | '』'
            | '«'
            | '»'
    )
}

/// The closing quote for `open`; `None` if it is not an opening quote.
pub(super) const fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' | '＂' => Some(open),
        '“' => Some('”'),
        // German quotes.
        '„' => Some('“'),
        '‚' => Some('‘'),
        '«' => Some('»'),
        '»' => Some('«'),
        '‘' => Some('’'),
        '「' => Some('」'),
        '『' => Some('』'),
        _ => None,
    }
}

/// White space between tokens: JSON and Unicode white space, and zero-width characters.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\u{200c}' | '\u{200d}' | '\u{2060}')
}

pub(super) const fn is_json_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '+')
}
