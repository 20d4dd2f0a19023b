//! One literal of the source as a pattern: its texts, and the places that something is written into.

use crate::message::language::Language;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternPiece {
    /// Words that stand in every text made from it.
    Text(String),
    /// `{name}`. Inside backticks or 「」 it holds data, such as the name of a file's key, which is the same in every language;
    /// so it does with one of the names that paths have in messages (`PATHS`).
    Place {
        /// Its name; unnamed ones are `1`, `2`, … in their order.
        name: String,
        /// Whether it stands inside backticks or 「」, or holds a path.
        code: bool,
    },
}

/// Places that hold paths. A file may be called as a sentence is.
const PATHS: [&str; 6] = ["directory", "file", "folder", "path", "shown", "store"];

/// The pieces of a format literal. `{{` and `}}` are braces, `{x:?}` is `{x}`, `{}` and `{:>3}` are `{1}`, `{2}`, …, and `{0}` is
/// `{1}`. Braces with anything else between them are words.
pub fn pieces(literal: &str) -> Vec<PatternPiece> {
    read(literal, true)
}

/// The pieces of a translation, in which numbers count from one.
pub(crate) fn pieces_of_translation(text: &str) -> Vec<PatternPiece> {
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
            && let Some((inside, behind)) = after.split_once('}')
            && let Some(name) = name(inside, from_zero, &mut unnamed)
        {
            if !text.is_empty() {
                pieces.push(PatternPiece::Text(std::mem::take(&mut text)));
            }
            let code = code || quoted || PATHS.contains(&name.as_str());
            pieces.push(PatternPiece::Place { name, code });
            rest = behind;
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

/// The name of what stands between braces; none when that is no place.
fn name(inside: &str, from_zero: bool, unnamed: &mut usize) -> Option<String> {
    let name = inside.split_once(':').map_or(inside, |(name, _)| name);
    if name.is_empty() {
        *unnamed += 1;
        return Some(unnamed.to_string());
    }
    if let Ok(number) = name.parse::<usize>() {
        return Some((number + usize::from(from_zero)).to_string());
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (name.chars().all(letters) && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_owned())
}

/// An English literal with values in its places; a place without a value is left as it is named.
pub(crate) fn fill_english(literal: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let written = pieces(literal).into_iter().map(|piece| match piece {
        PatternPiece::Text(text) => text,
        PatternPiece::Place { name, .. } => value(&name).unwrap_or_else(|| format!("{{{name}}}")),
    });
    written.collect()
}

/// A Chinese text with values in its places, with spaces between Chinese and Latin characters and no others.
pub(crate) fn fill_translation(translation: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut seam = false;
    for piece in pieces_of_translation(translation) {
        let (text, code) = match piece {
            PatternPiece::Text(text) => (text, None),
            PatternPiece::Place { name, code } => (value(&name).unwrap_or_else(|| format!("{{{name}}}")), Some(code)),
        };
        if seam || code == Some(false) {
            beside(&mut out, &text)
        } else {
            out.push_str(&text)
        }
        seam = code == Some(false);
    }
    out
}

/// Writes `next` behind what is there, as the language puts spaces.
pub(crate) fn spaced(out: &mut String, next: &str, language: Language) {
    match language {
        Language::English => out.push_str(next),
        Language::Chinese => beside(out, next),
    }
}

/// `template` with `values` in its places; a place without a value stays as it is written.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let written = pieces_of_translation(template).into_iter().map(|piece| match piece {
        PatternPiece::Text(text) => text,
        PatternPiece::Place { name, .. } => match values.iter().find(|(of, _)| *of == name) {
            Some((_, value)) => (*value).to_owned(),
            None => format!("{{{name}}}"),
        },
    });
    written.collect()
}

/// Writes `next` behind what is there as Chinese is set: a space between a Chinese character and a Latin one or code, none between
/// two Chinese ones. Which it is shows only when it is known what stands in a place.
pub(crate) fn beside(out: &mut String, next: &str) {
    let (trimmed, rest) = (out.trim_end_matches(' '), next.trim_start_matches(' '));
    let (Some(before), Some(after)) = (trimmed.chars().next_back(), rest.chars().next()) else {
        return out.push_str(next);
    };
    let han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    let wide = |c: char| han(c) || matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}');
    let narrow = |c: char| c.is_ascii_alphanumeric() || c == '`';
    let between = match () {
        () if wide(before) && wide(after) => "",
        () if (han(before) && narrow(after)) || (narrow(before) && han(after)) => " ",
        () => return out.push_str(next),
    };
    out.truncate(trimmed.len());
    out.push_str(between);
    out.push_str(rest);
}
