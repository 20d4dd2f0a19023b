//! Diagnostics as reports for a terminal: the line of the file with a mark under what is meant, help, related places, fixes.

use std::borrow::Cow;

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet, normalize_untrusted_str};

use crate::source::diagnostic::{Diagnostic, Fix, Severity};
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// Longer lines are shown in part (in bytes): a file may be one line of megabytes.
const MAX_LINE_BYTES: usize = 4096;

/// How much of such a line is shown before and behind the place, in bytes.
const EXCERPT_BYTES: usize = 60;

/// The longest mark under a line, in bytes of what is marked.
const MAX_MARK_BYTES: usize = 300;

/// A fix that touches more lines than this is named, not shown.
const MAX_FIX_LINES: usize = 6;

/// Reports for a terminal, one after the other as they are given, each ended by a blank line. `color` writes ANSI escapes.
///
/// A span over several lines is marked in its first one. Control characters in texts of the author are made visible.
pub fn human(diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(DEFAULT_TERM_WIDTH);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&groups(diagnostic)));
        out.push_str("\n\n");
    }
    out
}

fn groups(diagnostic: &Diagnostic) -> Vec<Group<'_>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level.primary_title(visible(&diagnostic.message)).id(diagnostic.rule);
    let mut main = mark(Group::with_title(title), &diagnostic.file, diagnostic.span);
    if let Some(help) = &diagnostic.help {
        main = main.element(Level::HELP.message(visible(help)));
    }
    let mut groups = vec![main];
    for related in &diagnostic.related {
        let title = Level::NOTE.secondary_title(visible(&related.message));
        groups.push(mark(Group::with_title(title), &related.file, related.span));
    }
    for fix in &diagnostic.fixes {
        groups.push(suggest(fix, &diagnostic.file));
    }
    groups
}

/// Text with its control characters made visible: the renderer does so for some of what it is given only.
fn visible(text: &str) -> String {
    text.lines().map(|line| normalize_untrusted_str(&without_c1(line))).collect::<Vec<_>>().join("\n")
}

/// Text whose C1 control characters, which some terminals obey and the renderer lets through, are a character of the same
/// length: spans stay right.
fn without_c1(text: &str) -> Cow<'_, str> {
    let c1 = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    if text.contains(c1) { Cow::Owned(text.replace(c1, "·")) } else { Cow::Borrowed(text) }
}

/// Adds the line of `span` with a mark under it.
fn mark<'a>(group: Group<'a>, file: &'a SourceFile, span: Span) -> Group<'a> {
    let span = file.clamp(span);
    let (line, column) = file.line_column(span.start);
    let shown = file.line_span(line).unwrap_or(span);
    let start = span.start.clamp(shown.start, shown.end);
    let end = span.end.clamp(start, shown.end).min(file.text().ceil_char_boundary(start + MAX_MARK_BYTES));
    if shown.len() > MAX_LINE_BYTES {
        let text = file.text();
        let from = text.ceil_char_boundary(start.saturating_sub(EXCERPT_BYTES).max(shown.start));
        let to = text.floor_char_boundary((start + EXCERPT_BYTES).min(shown.end));
        let excerpt = visible(file.slice(Span::new(from, to)));
        return group
            .element(Origin::path(visible(file.name())).line(line).char_column(column))
            .element(Level::NOTE.message(format!("in this long line: …{excerpt}…")));
    }
    let marked = AnnotationKind::Primary.span(start - shown.start..end - shown.start);
    group.element(
        Snippet::source(without_c1(file.slice(shown))).path(visible(file.name())).line_start(line).annotation(marked),
    )
}

/// A fix: its title, and the lines that it changes where they are few and short.
fn suggest<'a>(fix: &'a Fix, file: &'a SourceFile) -> Group<'a> {
    let group = Group::with_title(Level::HELP.secondary_title(visible(&fix.title)));
    let first = fix.edits.iter().map(|edit| edit.span.start).min().unwrap_or(0);
    let last = fix.edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
    let (from, to) = (file.line(first), file.line(last));
    let (Some(start), Some(end)) = (file.line_span(from), file.line_span(to)) else { return group };
    let shown = start.join(end);
    let fits =
        |edit: &Span| shown.start <= edit.start && edit.end <= shown.end && file.text().get(edit.range()).is_some();
    let mut spans: Vec<Span> = fix.edits.iter().map(|edit| edit.span).collect();
    spans.sort_unstable();
    let apart = spans.is_sorted_by(|a, b| a.end <= b.start);
    let few = !fix.edits.is_empty() && to - from < MAX_FIX_LINES && shown.len() <= MAX_LINE_BYTES;
    if !few || !apart || !spans.iter().all(fits) {
        return group;
    }
    let patches = fix
        .edits
        .iter()
        .map(|edit| Patch::new(edit.span.start - shown.start..edit.span.end - shown.start, edit.text.as_str()));
    group.element(
        Snippet::source(without_c1(file.slice(shown))).path(visible(file.name())).line_start(from).patches(patches),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::diagnostic::Edit;

    #[test]
    fn a_report_shows_place_help_related_and_fix() {
        let file = Arc::new(SourceFile::new("脚本/a.yaml", "姓名: 张三\ncontnet: 你好 {{ x }}\n"));
        let other = Arc::new(SourceFile::new("b.yaml", "\ncontent: x\n"));
        let key = Span::new(15, 22);
        let all = [
            Diagnostic::error("unknown-key", "`contnet` is not a key of `ai_ask`", &file, key)
                .with_help("did you mean `content`?\nkeys that begin with `x-` are your own")
                .with_related("it is called so here", &other, Span::new(1, 8))
                .with_fix("write `content`", vec![Edit::replace(key, "content")]),
            Diagnostic::warning("old-spelling", "marked in its first line only", &file, Span::new(8, 30)),
            Diagnostic::info("note", "a point behind the last line", &file, Span::point(999)),
        ];
        insta::assert_snapshot!(human(&all, false));
        assert!(human(&all, true).contains("\u{1b}["));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let file = Arc::new(SourceFile::new("a\u{1b}[31m.yaml", "a: \u{1b}[31m\u{7}\u{9b}31m\n"));
        let diagnostic = Diagnostic::error("x", "bad \u{1b}[31m\u{9b}31m", &file, Span::new(3, 5))
            .with_help("\u{1b}[31m")
            .with_related("\u{1b}[31m", &file, Span::new(0, 1))
            .with_fix("\u{1b}[31m", vec![Edit::insert(0, "\u{1b}[31m")]);
        let shown = human(&[diagnostic], false);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{shown:?}");
    }

    #[test]
    fn places_that_do_not_fit_the_file_are_brought_inside() {
        let file = Arc::new(SourceFile::new("a.yaml", "你好: 世界\n"));
        let edits = [
            vec![Edit::replace(Span::new(1, 4), "x")],
            vec![Edit::replace(Span { start: 6, end: 3 }, "x")],
            vec![Edit::replace(Span::new(0, 6), "x"), Edit::replace(Span::new(3, 9), "y")],
            vec![Edit::replace(Span::new(0, 99), "x")],
            Vec::new(),
        ];
        for edits in edits {
            let mut diagnostic = Diagnostic::error("x", "m", &file, Span::default()).with_fix("change it", edits);
            diagnostic.span = Span { start: 4, end: 2 };
            let shown = human(&[diagnostic], false);
            assert!(shown.contains("a.yaml:1:2") && shown.contains("help: change it"), "{shown}");
        }
    }

    #[test]
    fn a_line_of_megabytes_is_shown_in_part_and_at_once() {
        let text = format!("a: {}你好{}", "长".repeat(1_000_000), "b\u{1b}".repeat(1_000_000));
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let span = Span::new(3_000_003, 3_000_009);
        let shown = human(&vec![Diagnostic::error("x", "m", &file, span); 3], false);
        assert!(shown.len() < 2_000, "{}", shown.len());
        assert!(shown.contains("a.yaml:1:1000004") && shown.contains("你好"), "{shown}");
    }
}
