//! Removes unintended characters from a content before it becomes a cell (docs/notebook.md). Nothing else is changed, neither
//! spaces nor line ends.
//!
//! * a byte-order mark at the start;
//! * for code: a fence around all of it, which is a first line of three or more backticks and at most one word, and a last line
//!   of the same number of backticks, without such a line in between.

use std::borrow::Cow;

use crate::notebook::cell::CellKind;

/// The content without them.
pub(crate) fn clean(content: &str, kind: CellKind) -> &str {
    let content = content.trim_start_matches('\u{feff}');
    if kind == CellKind::Code { strip_fence(content).unwrap_or(content) } else { content }
}

/// The content of a fence that encloses the whole text.
fn strip_fence(text: &str) -> Option<&str> {
    let (first, rest) = text.trim().split_once('\n')?;
    let language = first.trim_start_matches('`');
    let ticks = first.get(..first.len() - language.len())?;
    if ticks.len() < 3 || language.trim().contains([' ', '`']) {
        return None;
    }
    let code = rest.strip_suffix(ticks)?;
    let code = if code.is_empty() { code } else { code.strip_suffix('\n')? };
    let is_fence_line = |line: &str| line.trim_start().starts_with(ticks);
    (!code.lines().any(is_fence_line)).then(|| code.strip_suffix('\r').unwrap_or(code))
}

/// The text as a heading with these marks instead of its own, and the first line without marks, which is the heading.
pub(crate) fn to_heading(text: &str, marks: &str) -> (String, String) {
    let heading_text = heading_text(text);
    (format!("{marks} {heading_text}"), heading_text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// The text with a heading: unchanged if it already starts with a heading of any level, else with these marks.
pub(crate) fn with_heading<'a>(text: &'a str, marks: &str) -> Cow<'a, str> {
    let level = text.trim_start().chars().take_while(|c| *c == '#').count();
    let is_heading = (1..=6).contains(&level) && text.trim_start().chars().nth(level).is_none_or(char::is_whitespace);
    if is_heading { Cow::Borrowed(text) } else { Cow::Owned(format!("{marks} {}", text.trim_start())) }
}

/// The text of a heading without marks of any level.
fn heading_text(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}').trim();
    let bare = text.trim_start_matches('#');
    // `#1` is text, `# 1` is a heading.
    if bare.starts_with(char::is_whitespace) { bare.trim_start() } else { text }
}
