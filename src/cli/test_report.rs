//! The report of tests for people: one line per test; for a failed test, the conversation up to the failure.

use std::fmt::Write;

use crate::cli::table::padded;
use bcc_authoring::test_runner::diff::{DiffPiece, condensed, difference, in_line};
use bcc_authoring::test_runner::result::{TestFailure, TestResult, TestStatus, TranscriptLine};
use bcc_lang::message::language::Language;
use bcc_lang::source::render::visible::{visible, visible_line};
use bcc_runtime::program::event::Speaker;

/// The limit on the lines of a conversation that a failure shows.
const MAX_LINES: usize = 40;

/// The limit on the characters of one text that a failure shows.
const MAX_CHARACTERS: usize = 2_000;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const QUIET: &str = "2";

/// The report of one case in `language`. The conversation and values are not translated.
pub fn case(ran: &TestResult, color: bool, language: Language) -> String {
    let paint = Paint { color, language };
    let mut out = String::new();
    let (sign, code) = match ran.status {
        TestStatus::Passed => ("✓", GREEN),
        TestStatus::Failed | TestStatus::Broken => ("✗", RED),
        TestStatus::Skipped => ("–", YELLOW),
    };
    let place = match ran.failures.first() {
        Some(failure) => format!("{}:{}", ran.file.name(), failure.line),
        None => ran.file.name().to_owned(),
    };
    let place = paint.in_color(QUIET, &format!("({})", visible_line(&place)));
    // Writing to a string does not fail, here and below.
    let _ = writeln!(out, "{} {} {place}", paint.in_color(code, sign), visible_line(&ran.title()));
    if let Some(reason) = &ran.reason {
        let _ = writeln!(out, "    {}", visible(&reason.render(language)));
    }
    if ran.failed() {
        transcript(ran, paint, &mut out);
    }
    for note in &ran.notes {
        let _ = writeln!(
            out,
            "    {}",
            paint.in_color(YELLOW, &visible(&language.format("note: {note}", &[("note", &note.render(language))])))
        );
    }
    if ran.failed() {
        out.push('\n');
    }
    out
}

/// The conversation up to the first failure, and the failures.
fn transcript(ran: &TestResult, paint: Paint, out: &mut String) {
    let count = ran.failures.first().map_or(ran.transcript.len(), |failure| failure.transcript_lines);
    let hidden = count.saturating_sub(MAX_LINES);
    if hidden > 0 {
        let hidden = hidden.to_string();
        let _ = writeln!(out, "    {}", paint.language.format("… {hidden} earlier lines", &[("hidden", &hidden)]));
    }
    for line in ran.transcript.iter().take(count).skip(hidden) {
        transcript_line(line, paint, out);
    }
    for failure in &ran.failures {
        failure_details(ran, failure, paint, out);
    }
}

fn transcript_line(line: &TranscriptLine, paint: Paint, out: &mut String) {
    let (speaker, code) = if line.speaker == Speaker::Ai { ("AI", QUIET) } else { ("user", "1") };
    let speaker = paint.in_color(code, &padded(&paint.language.translate(speaker), 4));
    let text = cut(line.text.trim_end(), paint.language);
    let mut lines = text.lines();
    let _ = writeln!(out, "    {speaker} │ {}", visible(lines.next().unwrap_or_default()));
    for more in lines {
        let _ = writeln!(out, "         │ {}", visible(more));
    }
}

fn failure_details(ran: &TestResult, failure: &TestFailure, paint: Paint, out: &mut String) {
    let source_line =
        ran.file.line_span(failure.line).map(|span| ran.file.slice(span).trim().to_owned()).unwrap_or_default();
    let language = paint.language;
    let source_line = cut(&source_line, language);
    let place = format!("{}:{}", ran.file.name(), failure.line);
    let _ = writeln!(
        out,
        "  {} {} {}",
        paint.in_color(RED, ">"),
        visible(&source_line),
        paint.in_color(QUIET, &format!("({})", visible_line(&place)))
    );
    let _ = writeln!(out, "    {}", paint.in_color(RED, &visible(&failure.message.render(language))));
    if let Some(exact) = &failure.exact {
        block("expected", &visible(exact), language, out);
        let found = failure.found.render(language);
        block("found", &visible(&found), language, out);
        let pieces = condensed(difference(exact, found.trim()));
        block("differs", &paint.difference(&pieces), language, out);
    } else {
        if !failure.expected.is_empty() {
            block("expected", &visible(&failure.expected.render(language)), language, out);
        }
        if !failure.found.is_empty() {
            block("found", &visible(&failure.found.render(language)), language, out);
        }
    }
    if let Some(help) = &failure.help {
        block("help", &visible(&help.render(language)), language, out);
    }
}

/// A text up to the limit.
fn cut(text: &str, language: Language) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => {
            let (start, count) = (text.get(..end).unwrap_or_default(), text.chars().count().to_string());
            format!("{start}… {}", language.format("({count} characters)", &[("count", &count)]))
        }
        None => text.to_owned(),
    }
}

fn block(name: &str, text: &str, language: Language, out: &mut String) {
    let shown = cut(text, language);
    let mut lines = shown.lines();
    let first = lines.next().unwrap_or_default();
    let _ = writeln!(out, "    {} {first}", padded(&language.translate(name), 9));
    for more in lines {
        let _ = writeln!(out, "    {:<9} {more}", "");
    }
}

pub fn summary(ran: &[TestResult], unreadable: usize, skipped_files: usize, language: Language) -> String {
    let count = |status| ran.iter().filter(|ran| ran.status == status).count();
    let failed = count(TestStatus::Failed) + count(TestStatus::Broken) + unreadable;
    let others = match skipped_files {
        0 => "",
        1 => " (1 YAML file is not a test and was skipped)",
        _ => " ({skipped_files} YAML files are not tests and were skipped)",
    };
    let others = language.format(others, &[("skipped_files", &skipped_files.to_string())]);
    let number = |number: usize| number.to_string();
    let (passed, failed, skipped) =
        (number(count(TestStatus::Passed)), number(failed), number(count(TestStatus::Skipped)));
    let values = [("passed", passed.as_str()), ("failed", &failed), ("skipped", &skipped)];
    format!("{}{others}\n", language.format("{passed} passed, {failed} failed, {skipped} skipped", &values))
}

#[derive(Clone, Copy)]
struct Paint {
    color: bool,
    language: Language,
}

impl Paint {
    fn in_color(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn difference(self, pieces: &[DiffPiece]) -> String {
        if !self.color {
            return visible(&in_line(pieces));
        }
        let marked = |piece: &DiffPiece| match piece {
            DiffPiece::Same(text) => visible(text),
            DiffPiece::Expected(text) => format!("\u{1b}[9;{GREEN}m{}\u{1b}[0m", visible(text)),
            DiffPiece::Found(text) => format!("\u{1b}[4;{RED}m{}\u{1b}[0m", visible(text)),
        };
        pieces.iter().map(marked).collect()
    }
}
