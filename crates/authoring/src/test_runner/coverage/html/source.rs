//! The lines of a file, each marked by the innermost part that is written in it.

use crate::test_runner::coverage::coverage::Covered;
use crate::test_runner::coverage::html::escape::escaped;
use crate::test_runner::coverage::item::CoverageItem;
use bcc_lang::source::render::redaction::mask;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    /// How often the innermost part of the line ran; none for a line of no part.
    ran: Option<u64>,
    /// Whether that part begins in it.
    begins: bool,
}

/// The lines of a file. Secrets in it are not shown.
pub(super) fn lines(covered: &Covered, number: usize) -> String {
    let file = &covered.outline.file;
    let count = file.line(file.text().len());
    let mut marks = vec![Mark::default(); count + 1];
    covered.outline.items.iter().for_each(|item| put(covered, item, &mut marks));
    let mut list = String::from("<ol class=\"source\">\n");
    for (line, mark) in marks.iter().enumerate().skip(1) {
        let Some(span) = file.line_span(line) else { continue };
        let text = mask(file, span);
        if text.is_empty() && line == count {
            continue;
        }
        list += &row(number, line, &text, *mark);
    }
    list + "</ol>\n"
}

/// Marks the lines of a part, then those of the parts inside of it, which stand before it.
fn put(covered: &Covered, item: &CoverageItem, marks: &mut [Mark]) {
    let ran = covered.tally(item).ran;
    for line in item.line..=item.last_line {
        if let Some(mark) = marks.get_mut(line) {
            // Several may begin in one line: one that never ran must be seen.
            let here =
                if line == item.line && mark.begins { mark.ran.map_or(ran, |other| other.min(ran)) } else { ran };
            *mark = Mark { ran: Some(here), begins: mark.begins || line == item.line };
        }
    }
    // What an outer part begins with is not begun again by the lines of an inner one.
    item.children.iter().for_each(|child| put(covered, child, marks));
}

fn row(number: usize, line: usize, text: &str, mark: Mark) -> String {
    let (class, count, said) = match mark {
        Mark { ran: None, .. } => ("", String::new(), ""),
        Mark { ran: Some(0), begins: true } => (" class=\"miss first\"", "✗".to_owned(), "never ran"),
        Mark { ran: Some(0), begins: false } => (" class=\"miss\"", String::new(), ""),
        Mark { ran: Some(times), begins: true } => (" class=\"hit first\"", format!("{times}×"), "ran"),
        Mark { ran: Some(_), begins: false } => (" class=\"hit\"", String::new(), ""),
    };
    let label = if said.is_empty() { String::new() } else { format!(" title=\"{said}\"") };
    let shown = text.trim_start_matches(' ');
    // A long line goes on under its own beginning.
    let indent = text.len() - shown.len();
    format!(
        "<li id=\"f{number}-{line}\"{class}><a class=\"no\" href=\"#f{number}-{line}\">{line}</a><span class=\"count\"{label}>{count}</span><code style=\"--in:{indent}\">{}</code></li>\n",
        escaped(shown)
    )
}
