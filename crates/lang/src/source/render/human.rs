//! Renders diagnostics as terminal reports: the line of the file with a mark below the span, help, related positions, fixes.

use crate::message::language::Language;
use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};

use crate::source::diagnostic::{Diagnostic, Fix, Severity, order};
use crate::source::render::redaction::{mask, without_secrets};
use crate::source::render::truncation;
use crate::source::render::visible::{visible, visible_at, visible_line};
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// Longer lines are shown in part (in bytes): a file may be one line of megabytes.
const MAX_LINE_BYTES: usize = 4096;

/// How much of such a line is shown before and after the span, in bytes.
const EXCERPT_BYTES: usize = 60;

/// The longest mark below a line, in bytes of the marked text.
const MAX_MARK_BYTES: usize = 300;

/// A fix that touches more lines is named, not shown.
const MAX_FIX_LINES: usize = 6;

/// A fix with longer lines, in bytes, is only named too: they would be written in full, before the change and after it.
const MAX_FIX_BYTES: usize = 1_000;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub color: bool,
    /// Whether to show every diagnostic, however many there are.
    pub all: bool,
    /// The language of messages, help, titles of fixes and the report's own text.
    pub language: Language,
}

/// Renders terminal reports in the given order, each followed by a blank line. `color` writes ANSI escapes.
///
/// A span over several lines is marked on its first line. What a terminal would obey or hide in the author's texts is visible.
pub fn human(diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = renderer(color);
    let mut out = String::new();
    without_secrets(diagnostics)
        .iter()
        .for_each(|diagnostic| write(&mut out, &renderer, diagnostic, Language::English));
    out
}

/// Renders reports like [`human`], by file and position, up to a maximum per rule in a file, per file, and in total; errors
/// have priority over warnings. The omitted reports are counted in a line below their file.
pub fn report(diagnostics: &[Diagnostic], options: &Options) -> String {
    let diagnostics = without_secrets(diagnostics);
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by(|a, b| order(a, b));
    let chosen = if options.all { vec![true; sorted.len()] } else { truncation::chosen(&sorted) };
    let renderer = renderer(options.color);
    let mut out = String::new();
    let (mut hidden_files, mut hidden_findings) = (0, 0);
    let selection: Vec<(&Diagnostic, bool)> = sorted.into_iter().zip(chosen).collect();
    for group in selection.chunk_by(|(a, _), (b, _)| a.file.name() == b.file.name()) {
        if !group.iter().any(|(_, shown)| *shown) {
            hidden_files += 1;
            hidden_findings += group.len();
            continue;
        }
        group
            .iter()
            .filter(|(_, shown)| *shown)
            .for_each(|(diagnostic, _)| write(&mut out, &renderer, diagnostic, options.language));
        let name = group.first().map_or("", |(diagnostic, _)| diagnostic.file.name());
        let hidden = group.iter().filter(|(_, shown)| !shown).map(|(diagnostic, _)| diagnostic.rule);
        line(&mut out, truncation::omitted_in_file(name, hidden), options.language);
    }
    line(&mut out, truncation::omitted_files(hidden_files, hidden_findings), options.language);
    out
}

/// The summary line: "3 files: 2 errors, 1 warning", or "3 files, nothing to report". Without a line break.
pub fn summary(files: usize, diagnostics: &[Diagnostic]) -> Message {
    let found = counts(diagnostics);
    match (files, diagnostics.is_empty()) {
        (0, true) => msg!("no files, nothing to report"),
        (1, true) => msg!("1 file, nothing to report"),
        (_, true) => msg!("{files} files, nothing to report"),
        (0, false) => msg!("no files: {found}"),
        (1, false) => msg!("1 file: {found}"),
        (_, false) => msg!("{files} files: {found}"),
    }
}

/// The number of diagnostics by severity: "2 errors, 1 warning"; empty if there are none.
pub fn counts(diagnostics: &[Diagnostic]) -> Message {
    let parts = [Severity::Error, Severity::Warning, Severity::Info].into_iter().filter_map(|severity| {
        let number = diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        Some(match (number, severity) {
            (0, _) => return None,
            (1, Severity::Error) => msg!("1 error"),
            (1, Severity::Warning) => msg!("1 warning"),
            (1, Severity::Info) => msg!("1 note"),
            (_, Severity::Error) => msg!("{number} errors"),
            (_, Severity::Warning) => msg!("{number} warnings"),
            (_, Severity::Info) => msg!("{number} notes"),
        })
    });
    Message::list(Joint::Item, parts)
}

fn renderer(color: bool) -> Renderer {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.term_width(DEFAULT_TERM_WIDTH)
}

fn write(out: &mut String, renderer: &Renderer, diagnostic: &Diagnostic, language: Language) {
    let mut rendered = renderer.render(&groups(diagnostic, language));
    let related = diagnostic.related.iter().map(|related| (&related.file, related.span));
    // Behind what was corrected before, because the places are written in this order.
    let mut from = 0;
    for (file, span) in [(&diagnostic.file, diagnostic.span)].into_iter().chain(related) {
        if let Some((written, place)) = corrected_place(file, span) {
            // A longer number may begin with the same digits.
            let rest = rendered.get(from..).unwrap_or_default();
            let whole =
                rest.match_indices(&written).map(|(at, _)| from + at..from + at + written.len()).find(|range| {
                    !rendered.get(range.end..).is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
                });
            if let Some(range) = whole {
                from = range.start + place.len();
                rendered.replace_range(range, &place);
            }
        }
    }
    out.push_str(&rendered);
    out.push_str("\n\n");
}

fn line(out: &mut String, text: Option<Message>, language: Language) {
    if let Some(text) = text {
        out.push_str(&text.render(language));
        out.push_str("\n\n");
    }
}

fn groups(diagnostic: &Diagnostic, language: Language) -> Vec<Group<'_>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR.with_name(Message::word("error").render(language)),
        Severity::Warning => Level::WARNING.with_name(Message::word("warning").render(language)),
        Severity::Info => Level::INFO.with_name(Message::word("info").render(language)),
    };
    let help_level = || Level::HELP.with_name(Message::word("help").render(language));
    let title = level.primary_title(terminal_text(&diagnostic.message, language)).id(diagnostic.rule);
    let mut main = mark(Group::with_title(title), &diagnostic.file, diagnostic.span, language);
    // The help is redundant if the title of a fix has the same text.
    let help = diagnostic
        .help
        .as_ref()
        .filter(|help| diagnostic.fixes.iter().all(|fix| fix.title.to_string() != help.to_string()));
    if let Some(help) = help {
        main = main.element(help_level().message(terminal_text(help, language)));
    }
    let mut groups = vec![main];
    for related in &diagnostic.related {
        let title = Level::NOTE
            .with_name(Message::word("note").render(language))
            .secondary_title(terminal_text(&related.message, language));
        groups.push(mark(Group::with_title(title), &related.file, related.span, language));
    }
    for fix in &diagnostic.fixes {
        let title = help_level().secondary_title(terminal_text(&fix.title, language));
        groups.push(suggest(Group::with_title(title), fix, &diagnostic.file));
    }
    groups
}

/// Renders a message, safe for a terminal.
fn terminal_text(text: &Message, language: Language) -> String {
    visible(&text.render(language))
}

/// Adds the line of `span` with a mark below it.
fn mark<'a>(group: Group<'a>, file: &'a SourceFile, span: Span, language: Language) -> Group<'a> {
    let span = file.clamp(span);
    let (line, column) = file.line_column(span.start);
    let shown = file.line_span(line).unwrap_or(span);
    let start = span.start.clamp(shown.start, shown.end);
    let end = span.end.clamp(start, shown.end).min(file.text().ceil_char_boundary(start + MAX_MARK_BYTES));
    if shown.len() > MAX_LINE_BYTES {
        let text = file.text();
        let from = text.ceil_char_boundary(start.saturating_sub(EXCERPT_BYTES).max(shown.start));
        let to = text.floor_char_boundary((start + EXCERPT_BYTES).min(shown.end));
        let excerpt = visible(&mask(file, Span::new(from, to)));
        // Text of the file is an argument, because it is not in the catalogue.
        let note = msg!("in this long line: …{excerpt}…").render(language);
        return group
            .element(Origin::path(visible_line(file.name())).line(line).char_column(column))
            .element(Level::NOTE.with_name(Message::word("note").render(language)).message(note));
    }
    let (text, moved) = visible_at(&mask(file, shown), &[start - shown.start, end - shown.start]);
    let [start, end] = moved.as_slice() else { return group };
    let marked = AnnotationKind::Primary.span(*start..*end);
    group.element(Snippet::source(text).path(visible_line(file.name())).line_start(line).annotation(marked))
}

/// The place of `span` as the renderer writes it and as it is in the file, if they differ: characters that a terminal would hide are
/// shown as several, from which the renderer computes another column.
fn corrected_place(file: &SourceFile, span: Span) -> Option<(String, String)> {
    let span = file.clamp(span);
    let (line, column) = file.line_column(span.start);
    let shown = file.line_span(line).filter(|shown| shown.len() <= MAX_LINE_BYTES)?;
    let (text, moved) = visible_at(&mask(file, shown), &[span.start.clamp(shown.start, shown.end) - shown.start]);
    let shown_column = text.get(..*moved.first()?)?.chars().count() + 1;
    let place = |column: usize| format!("{}:{line}:{column}", visible_line(file.name()));
    (shown_column != column).then(|| (place(shown_column), place(column)))
}

/// Adds the lines that a fix changes to the group of its title, if they are few and short.
fn suggest<'a>(group: Group<'a>, fix: &'a Fix, file: &'a SourceFile) -> Group<'a> {
    let first = fix.edits.iter().map(|edit| edit.span.start).min().unwrap_or(0);
    let last = fix.edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
    let (from, to) = (file.line(first), file.line(last));
    let (Some(start), Some(end)) = (file.line_span(from), file.line_span(to)) else { return group };
    let shown = start.join(end);
    let fits =
        |edit: &Span| shown.start <= edit.start && edit.end <= shown.end && file.text().get(edit.range()).is_some();
    let mut spans: Vec<Span> = fix.edits.iter().map(|edit| edit.span).collect();
    spans.sort_unstable();
    let disjoint = spans.is_sorted_by(|a, b| a.end <= b.start);
    let small = !fix.edits.is_empty() && to - from < MAX_FIX_LINES && shown.len() <= MAX_FIX_BYTES;
    if !small || !disjoint || !spans.iter().all(fits) {
        return group;
    }
    let positions: Vec<usize> =
        fix.edits.iter().flat_map(|edit| [edit.span.start - shown.start, edit.span.end - shown.start]).collect();
    let (text, moved) = visible_at(&mask(file, shown), &positions);
    let patches: Vec<Patch<'_>> = fix
        .edits
        .iter()
        .zip(moved.chunks_exact(2))
        .filter_map(|(edit, range)| match range {
            [start, end] => Some(Patch::new(*start..*end, visible(&edit.text))),
            _ => None,
        })
        .collect();
    group.element(Snippet::source(text).path(visible_line(file.name())).line_start(from).patches(patches))
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
    fn the_column_is_that_of_the_file_also_after_characters_that_are_shown_as_several() {
        let file = Arc::new(SourceFile::new("a.yaml", "x: 您好\u{200b}，{{ naem }}\n"));
        let start = file.text().find("naem").unwrap();
        let found = Diagnostic::error("unknown-name", "no `naem`", &file, Span::new(start, start + 4));
        let shown = human(&[found], false);
        assert!(shown.contains("--> a.yaml:1:11\n"), "{shown}");
        assert!(shown.contains("1 | x: 您好\\u{200b}，{{ naem }}"), "{shown}");
        let (line, mark) =
            (shown.lines().find(|line| line.contains("naem }}")), shown.lines().find(|line| line.contains("^^^^")));
        assert!(line.is_some() && mark.is_some(), "{shown}");
    }

    /// Diagnostics of these rules, as many of each as given, one per line.
    fn diagnostics_of(name: &str, rules: &[(&'static str, usize)], severity: Severity) -> Vec<Diagnostic> {
        let total = rules.iter().map(|(_, count)| count).sum();
        let file = Arc::new(SourceFile::new(name, "x\n".repeat(total)));
        let all = rules.iter().flat_map(|(rule, count)| vec![*rule; *count]);
        let found = all.enumerate().map(|(line, rule)| Diagnostic {
            severity,
            ..Diagnostic::error(rule, "m", &file, Span::new(line * 2, line * 2 + 1))
        });
        found.collect()
    }

    /// The lines that count the omitted reports, and the number of reports shown.
    fn rest_and_shown(found: &[Diagnostic], all: bool) -> (Vec<String>, usize) {
        let shown = report(found, &Options { all, ..Options::default() });
        let rest = shown.lines().filter(|line| line.starts_with('…')).map(str::to_owned).collect();
        (rest, shown.matches(" --> ").count())
    }

    #[test]
    fn of_many_findings_some_are_shown_and_the_rest_is_counted() {
        let many = diagnostics_of("b.yaml", &[("unknown-kind", 1_000), ("wrong-type", 3)], Severity::Error);
        let (rest, shown) = rest_and_shown(&many, false);
        assert_eq!(rest, ["… and 990 more `unknown-kind` in b.yaml (`validate --all` shows all of them)"]);
        assert_eq!(shown, 13);
        assert_eq!(rest_and_shown(&many, true), (vec![], 1_003));
        assert_eq!(rest_and_shown(&diagnostics_of("a", &[("x", 10)], Severity::Error), false), (vec![], 10));

        let rules = [("r1", 20), ("r2", 30), ("r3", 11), ("r4", 11), ("r5", 12), ("r6", 10), ("r7", 11)];
        let (rest, shown) = rest_and_shown(&diagnostics_of("c\u{1b}.yaml", &rules, Severity::Warning), false);
        let line = "… and 55 more in c␛.yaml: 20 `r2`, 11 `r7`, 10 `r1`, 10 `r6`, 2 `r5`, 2 others";
        assert_eq!(rest, [format!("{line} (`validate --all` shows all of them)")]);
        assert_eq!(shown, 50);
    }

    #[test]
    fn no_error_is_hidden_behind_warnings() {
        let mut found =
            diagnostics_of("a.yaml", &[("w1", 10), ("w2", 10), ("w3", 10), ("w4", 10), ("w5", 10)], Severity::Warning);
        let file = Arc::clone(&found[0].file);
        found.push(Diagnostic::error("last", "m", &file, Span::point(99)));
        let shown = report(&found, &Options::default());
        assert!(shown.contains("error[last]") && shown.contains("… and 1 more `w5` in a.yaml"), "{shown}");
    }

    #[test]
    fn of_many_files_the_last_are_counted_in_one_line() {
        let mut found = Vec::new();
        for number in (0..300).rev() {
            found.extend(diagnostics_of(&format!("{number:03}.yaml"), &[("x", 2)], Severity::Error));
        }
        let (rest, shown) = rest_and_shown(&found, false);
        assert_eq!(rest, ["… and 400 more in 200 other files (`validate --all` shows all of them)"]);
        assert_eq!(shown, 200);
        let output = report(&found, &Options::default());
        assert!(output.contains("099.yaml") && !output.contains("100.yaml"), "by file");
    }

    #[test]
    fn the_summary_counts_in_plain_english() {
        let file = Arc::new(SourceFile::new("a", "x"));
        let with_severity = |severity| Diagnostic { severity, ..Diagnostic::error("x", "m", &file, Span::default()) };
        use Severity::{Error, Info, Warning};
        let table: [(usize, &[Severity], &str); 6] = [
            (3, &[], "3 files, nothing to report"),
            (1, &[], "1 file, nothing to report"),
            (0, &[], "no files, nothing to report"),
            (3, &[Error, Warning, Error], "3 files: 2 errors, 1 warning"),
            (1, &[Error], "1 file: 1 error"),
            (2, &[Warning, Info, Warning, Info], "2 files: 2 warnings, 2 notes"),
        ];
        for (files, severities, expected) in table {
            let found: Vec<Diagnostic> = severities.iter().map(|severity| with_severity(*severity)).collect();
            assert_eq!(summary(files, &found), expected);
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = "a: \u{1b}[31m\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\n";
        let file = Arc::new(SourceFile::new("a\u{1b}[31m\n.yaml", text));
        let diagnostic = Diagnostic::error("x", "bad \u{1b}[31m\u{9b}31m", &file, Span::new(3, 5))
            .with_help("\u{1b}[31m")
            .with_related("\u{1b}[31m", &file, Span::new(0, 1))
            .with_fix("\u{1b}[31m", vec![Edit::insert(0, "\u{1b}[31m")]);
        let shown = human(&[diagnostic], false);
        let harmful = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{200b}'..='\u{2069}');
        assert!(!shown.contains(harmful), "{shown:?}");
        assert!(shown.contains("␛[31m␇\\u{9b}31m\\u{202e}\\u{2066}\\u{200b}"), "{shown}");
    }

    #[test]
    fn a_mark_stands_below_its_text_after_characters_that_were_replaced() {
        let file = Arc::new(SourceFile::new("a.yaml", "\u{1b}\u{202e}contnet: x\n"));
        let key = Span::new(4, 11);
        let diagnostic =
            Diagnostic::error("x", "m", &file, key).with_fix("f", vec![Edit::replace(key, "con\u{1b}tent")]);
        let shown = human(&[diagnostic], false);
        let lines: Vec<&str> = shown.lines().collect();
        let source = lines.iter().position(|line| line.contains("contnet: x")).unwrap();
        let column = |line: &str, part: &str| line.split_once(part).unwrap().0.chars().count();
        assert_eq!(column(lines[source], "contnet"), column(lines[source + 1], "^^^^^^^"), "{shown}");
        assert!(!lines[source + 1].contains("^^^^^^^^") && shown.contains("con␛tent: x"), "{shown}");
    }

    #[test]
    fn positions_that_do_not_fit_the_file_are_clamped() {
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
    fn a_fix_in_a_long_line_is_named_and_does_not_write_the_line_twice() {
        let file = Arc::new(SourceFile::new("a.yaml", format!("contnet: {}\n", "长".repeat(1_000))));
        let key = Span::new(0, 7);
        let found = Diagnostic::error("x", "m", &file, key).with_fix("rename", vec![Edit::replace(key, "content")]);
        let shown = human(&[found], false);
        assert!(shown.contains("help: rename") && shown.matches('长').count() < 200, "{shown}");
    }

    #[test]
    fn a_line_of_megabytes_is_shown_in_part_and_at_once() {
        let text = format!("a: {}你好{}", "长".repeat(1_000_000), "b\u{1b}".repeat(1_000_000));
        let file = Arc::new(SourceFile::new("a.yaml", text));
        let span = Span::new(3_000_003, 3_000_009);
        let shown = human(&vec![Diagnostic::error("x", "m", &file, span); 3], false);
        assert!(shown.len() < 2_000, "{}", shown.len());
        assert!(shown.contains("a.yaml:1:1000004") && shown.contains("你好"), "{shown}");
        let found: Vec<Diagnostic> =
            (0..5_000).map(|n| Diagnostic::error("x", "m", &file, Span::point(3 + n * 600)).with_help("h")).collect();
        // Counting each column from the start of its line would take minutes here.
        let shown = report(&found, &Options { all: true, ..Options::default() });
        assert_eq!(shown.matches("error[x]").count(), 5_000);
    }
}
