//! The lines of a file, each marked by its innermost part.

use crate::test_runner::coverage::coverage::Covered;
use crate::test_runner::coverage::html::escape::escaped;
use crate::test_runner::coverage::item::CoverageItem;
use bcc_lang::source::render::redaction::mask;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LineCoverage {
    /// How often the innermost part of the line ran; `None` if it belongs to no part.
    ran: Option<u64>,
    /// Whether that part starts in this line.
    starts: bool,
}

/// The lines of a file. Secrets are masked.
pub(super) fn lines(covered: &Covered, number: usize) -> String {
    let file = &covered.outline.file;
    let count = file.line(file.text().len());
    let mut coverage = vec![LineCoverage::default(); count + 1];
    covered.outline.items.iter().for_each(|item| put(covered, item, &mut coverage));
    let mut list = String::from("<ol class=\"source\">\n");
    for (line, line_coverage) in coverage.iter().enumerate().skip(1) {
        let Some(span) = file.line_span(line) else { continue };
        let text = mask(file, span);
        if text.is_empty() && line == count {
            continue;
        }
        list += &row(number, line, &text, *line_coverage);
    }
    list + "</ol>\n"
}

/// Marks the lines of a part, then those of its children, which take precedence.
fn put(covered: &Covered, item: &CoverageItem, coverage: &mut [LineCoverage]) {
    let ran = covered.tally(item).ran;
    for line in item.line..=item.last_line {
        if let Some(line_coverage) = coverage.get_mut(line) {
            // Several parts may start in one line: one that never ran must be visible.
            let count = if line == item.line && line_coverage.starts {
                line_coverage.ran.map_or(ran, |other| other.min(ran))
            } else {
                ran
            };
            *line_coverage = LineCoverage { ran: Some(count), starts: line_coverage.starts || line == item.line };
        }
    }
    // The start of an outer part stays a start within an inner part.
    item.children.iter().for_each(|child| put(covered, child, coverage));
}

fn row(number: usize, line: usize, text: &str, line_coverage: LineCoverage) -> String {
    let (class, count, title) = match line_coverage {
        LineCoverage { ran: None, .. } => ("", String::new(), ""),
        LineCoverage { ran: Some(0), starts: true } => (" class=\"miss first\"", "✗".to_owned(), "never ran"),
        LineCoverage { ran: Some(0), starts: false } => (" class=\"miss\"", String::new(), ""),
        LineCoverage { ran: Some(times), starts: true } => (" class=\"hit first\"", format!("{times}×"), "ran"),
        LineCoverage { ran: Some(_), starts: false } => (" class=\"hit\"", String::new(), ""),
    };
    let label = if title.is_empty() { String::new() } else { format!(" title=\"{title}\"") };
    let shown = text.trim_start_matches(' ');
    // Wrapped lines are indented like their first line.
    let indent = text.len() - shown.len();
    format!(
        "<li id=\"f{number}-{line}\"{class}><a class=\"no\" href=\"#f{number}-{line}\">{line}</a><span class=\"count\"{label}>{count}</span><code style=\"--in:{indent}\">{}</code></li>\n",
        escaped(shown)
    )
}
