//! Parses a literal of the source into its texts and placeholders, and fills the placeholders.

use crate::message::language::Language;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternPiece {
    /// Constant text.
    Text(String),
    /// `{name}`. Inside backticks or 「」, or with one of the names used for paths (`PATHS`), it holds data, such as a key of a file,
    /// which is the same in every language.
    Place {
        /// Its name; unnamed ones are numbered `1`, `2`, …
        name: String,
        /// Whether it is inside backticks or 「」, or holds a path.
        code: bool,
    },
}

/// Placeholders that hold paths. A file name can look like a sentence.
const PATHS: [&str; 6] = ["directory", "file", "folder", "path", "shown", "store"];

/// The pieces of a format literal. `{{` and `}}` are braces, `{x:?}` is `{x}`, `{}` and `{:>3}` are `{1}`, `{2}`, …, and `{0}` is
/// `{1}`. Braces around anything else are constant text.
pub fn pieces(literal: &str) -> Vec<PatternPiece> {
    read(literal, true)
}

/// The pieces of a translation, in which numbers start at 1.
pub(crate) fn translation_pieces(text: &str) -> Vec<PatternPiece> {
    read(text, false)
}

fn read(literal: &str, from_zero: bool) -> Vec<PatternPiece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let (mut code, mut quoted, mut unnamed) = (false, false, 0);
    let mut rest = literal;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        if (c == '{' && after.starts_with('{')) || (c == '}' && after.starts_with('}')) {
            text.push(c);
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        if c == '{'
            && let Some((inside, remainder)) = after.split_once('}')
            && let Some(name) = name(inside, from_zero, &mut unnamed)
        {
            if !text.is_empty() {
                pieces.push(PatternPiece::Text(std::mem::take(&mut text)));
            }
            let code = code || quoted || PATHS.contains(&name.as_str());
            pieces.push(PatternPiece::Place { name, code });
            rest = remainder;
            continue;
        }
        code ^= c == '`';
        quoted = c == '「' || quoted && c != '」';
        text.push(c);
        rest = after;
    }
    if !text.is_empty() {
        pieces.push(PatternPiece::Text(text));
    }
    pieces
}

/// The name of the placeholder with this content; `None` if it is not a placeholder.
fn name(inside: &str, from_zero: bool, unnamed: &mut usize) -> Option<String> {
    let name = inside.split_once(':').map_or(inside, |(name, _)| name);
    if name.is_empty() {
        *unnamed += 1;
        return Some(unnamed.to_string());
    }
    if let Ok(number) = name.parse::<usize>() {
        return Some((number + usize::from(from_zero)).to_string());
    }
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (name.chars().all(is_name_char) && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_owned())
}

/// A translation of an English literal for [`Language::Pseudo`]: the same text, with its constant parts in `⟦ ⟧`.
pub(crate) fn bracketed(literal: &str) -> String {
    let texts = pieces(literal).into_iter().map(|piece| match piece {
        PatternPiece::Text(text) => format!("⟦{}⟧", text.replace('{', "{{").replace('}', "}}")),
        PatternPiece::Place { name, .. } => format!("{{{name}}}"),
    });
    texts.collect()
}

/// Fills the placeholders of an English literal. A placeholder without a value stays.
pub(crate) fn fill_english(literal: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let texts = pieces(literal).into_iter().map(|piece| match piece {
        PatternPiece::Text(text) => text,
        PatternPiece::Place { name, .. } => value(&name).unwrap_or_else(|| format!("{{{name}}}")),
    });
    texts.collect()
}

/// Fills the placeholders of a Chinese text, with spaces only between Chinese and Latin characters.
pub(crate) fn fill_translation(translation: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut after_value = false;
    for piece in translation_pieces(translation) {
        let (text, code) = match piece {
            PatternPiece::Text(text) => (text, None),
            PatternPiece::Place { name, code } => (value(&name).unwrap_or_else(|| format!("{{{name}}}")), Some(code)),
        };
        if after_value || code == Some(false) {
            push_spaced(&mut out, &text)
        } else {
            out.push_str(&text)
        }
        after_value = code == Some(false);
    }
    out
}

/// Appends `next` with the spacing of the language.
pub(crate) fn push_in_language(out: &mut String, next: &str, language: Language) {
    match language {
        Language::English | Language::Pseudo => out.push_str(next),
        Language::Chinese => push_spaced(out, next),
    }
}

/// Fills the placeholders of `template` with `values`. A placeholder without a value stays.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let texts = translation_pieces(template).into_iter().map(|piece| match piece {
        PatternPiece::Text(text) => text,
        PatternPiece::Place { name, .. } => match values.iter().find(|(key, _)| *key == name) {
            Some((_, value)) => (*value).to_owned(),
            None => format!("{{{name}}}"),
        },
    });
    texts.collect()
}

/// Appends `next` with Chinese spacing: a space between a Chinese character and a Latin one or code, none between two Chinese
/// characters. The spacing depends on the values, so it cannot be written in the catalogue.
pub(crate) fn push_spaced(out: &mut String, next: &str) {
    let (trimmed, rest) = (out.trim_end_matches(' '), next.trim_start_matches(' '));
    let (Some(before), Some(after)) = (trimmed.chars().next_back(), rest.chars().next()) else {
        return out.push_str(next);
    };
    let is_han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    let is_wide = |c: char| is_han(c) || matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}');
    let is_narrow = |c: char| c.is_ascii_alphanumeric() || c == '`';
    let between = match () {
        () if is_wide(before) && is_wide(after) => "",
        () if (is_han(before) && is_narrow(after)) || (is_narrow(before) && is_han(after)) => " ",
        () => return out.push_str(next),
    };
    out.truncate(trimmed.len());
    out.push_str(between);
    out.push_str(rest);
}
