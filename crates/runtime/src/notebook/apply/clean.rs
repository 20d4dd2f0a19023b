//! What is taken off a content before it becomes a cell (docs/notebook.md): what models and editors put around it
//! and nobody means. Nothing else is changed, neither spaces nor line ends.
//!
//! * a byte-order mark at its beginning;
//! * of code: a fence around all of it, that is a first line of three or more backticks with at most one word behind them, and
//!   a last line of as many backticks, when no such line stands between.

use std::borrow::Cow;

use crate::notebook::cell::CellKind;

/// The content without what is around it.
pub(crate) fn clean(content: &str, kind: CellKind) -> &str {
    let content = content.trim_start_matches('\u{feff}');
    if kind == CellKind::Code { unfenced(content).unwrap_or(content) } else { content }
}

/// What stands in the fence that is around the whole text.
fn unfenced(text: &str) -> Option<&str> {
    let (first, rest) = text.trim().split_once('\n')?;
    let language = first.trim_start_matches('`');
    let ticks = first.get(..first.len() - language.len())?;
    if ticks.len() < 3 || language.trim().contains([' ', '`']) {
        return None;
    }
    let code = rest.strip_suffix(ticks)?;
    let code = if code.is_empty() { code } else { code.strip_suffix('\n')? };
    let inside = |line: &str| line.trim_start().starts_with(ticks);
    (!code.lines().any(inside)).then(|| code.strip_suffix('\r').unwrap_or(code))
}

/// A text as a heading with these marks; its own marks are taken off before. Only its first line is the heading.
pub(crate) fn headed(text: &str, marks: &str) -> (String, String) {
    let words = words(text);
    (format!("{marks} {words}"), words.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// A text that begins with a heading, of whatever level; with these marks when it has none.
pub(crate) fn with_heading<'a>(text: &'a str, marks: &str) -> Cow<'a, str> {
    let level = text.trim_start().chars().take_while(|c| *c == '#').count();
    let is_heading = (1..=6).contains(&level) && text.trim_start().chars().nth(level).is_none_or(char::is_whitespace);
    if is_heading { Cow::Borrowed(text) } else { Cow::Owned(format!("{marks} {}", text.trim_start())) }
}

/// The words of a heading without marks of any level.
fn words(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    let bare = text.trim_start_matches('#');
    // `#1` is a word, `# 1` a heading.
    if bare.starts_with(char::is_whitespace) { bare.trim_start() } else { text }
}
