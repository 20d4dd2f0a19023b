//! The report of tests for people: a line for each, and for what failed the conversation up to there.

use std::fmt::Write;

use crate::cli::table::padded;
use crate::cli::terminal::plain;
use bcc_authoring::test_runner::diff::{DiffPiece, condensed, difference, in_line};
use bcc_authoring::test_runner::result::{TestFailure, TestResult, TestStatus, TranscriptLine};
use bcc_lang::message::language::Language;
use bcc_runtime::program::event::Speaker;

/// The most lines of a conversation that a failure shows.
const MOST_LINES: usize = 40;

/// The most characters of one text that a failure shows.
const MOST_CHARACTERS: usize = 2_000;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const QUIET: &str = "2";

/// One case, told in `language`. What was said in it is never translated, nor are values.
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
    let place = paint.in_color(QUIET, &format!("({place})"));
    // Writing to a text does not fail, here and below.
    let _ = writeln!(out, "{} {} {place}", paint.in_color(code, sign), plain(&ran.title()));
    if let Some(why) = &ran.why {
        let _ = writeln!(out, "    {}", plain(&why.render(language)));
    }
    if ran.failed() {
        story(ran, paint, &mut out);
    }
    for note in &ran.notes {
        let _ = writeln!(
            out,
            "    {}",
            paint.in_color(YELLOW, &plain(&language.filled("note: {note}", &[("note", &note.render(language))])))
        );
    }
    if ran.failed() {
        out.push('\n');
    }
    out
}

/// The conversation up to the failure, and what is otherwise.
fn story(ran: &TestResult, paint: Paint, out: &mut String) {
    let said = ran.failures.first().map_or(ran.transcript.len(), |failure| failure.said);
    let hidden = said.saturating_sub(MOST_LINES);
    if hidden > 0 {
        let hidden = hidden.to_string();
        let _ = writeln!(out, "    {}", paint.language.filled("… {hidden} earlier lines", &[("hidden", &hidden)]));
    }
    for line in ran.transcript.iter().take(said).skip(hidden) {
        spoken(line, paint, out);
    }
    for failure in &ran.failures {
        told(ran, failure, paint, out);
    }
}

fn spoken(line: &TranscriptLine, paint: Paint, out: &mut String) {
    let (who, code) = if line.speaker == Speaker::Ai { ("AI", QUIET) } else { ("user", "1") };
    let who = paint.in_color(code, &padded(&paint.language.said(who), 4));
    let text = cut(line.text.trim_end(), paint.language);
    let mut lines = text.lines();
    let _ = writeln!(out, "    {who} │ {}", plain(lines.next().unwrap_or_default()));
    for more in lines {
        let _ = writeln!(out, "         │ {}", plain(more));
    }
}

fn told(ran: &TestResult, failure: &TestFailure, paint: Paint, out: &mut String) {
    let written =
        ran.file.line_span(failure.line).map(|span| ran.file.slice(span).trim().to_owned()).unwrap_or_default();
    let language = paint.language;
    let written = cut(&written, language);
    let place = format!("{}:{}", ran.file.name(), failure.line);
    let _ = writeln!(
        out,
        "  {} {} {}",
        paint.in_color(RED, ">"),
        plain(&written),
        paint.in_color(QUIET, &format!("({place})"))
    );
    let _ = writeln!(out, "    {}", paint.in_color(RED, &plain(&failure.message.render(language))));
    if let Some(exact) = &failure.exact {
        block("expected", &plain(exact), language, out);
        let found = failure.found.render(language);
        block("found", &plain(&found), language, out);
        let pieces = condensed(difference(exact, found.trim()));
        block("differs", &paint.difference(&pieces), language, out);
    } else {
        if !failure.expected.is_empty() {
            block("expected", &plain(&failure.expected.render(language)), language, out);
        }
        if !failure.found.is_empty() {
            block("found", &plain(&failure.found.render(language)), language, out);
        }
    }
    if let Some(help) = &failure.help {
        block("help", &plain(&help.render(language)), language, out);
    }
}

/// A text that is not too long to be read.
fn cut(text: &str, language: Language) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => {
            let (start, count) = (text.get(..end).unwrap_or_default(), text.chars().count().to_string());
            format!("{start}… {}", language.filled("({count} characters)", &[("count", &count)]))
        }
        None => text.to_owned(),
    }
}

fn block(name: &str, text: &str, language: Language, out: &mut String) {
    let shown = cut(text, language);
    let mut lines = shown.lines();
    let first = lines.next().unwrap_or_default();
    let _ = writeln!(out, "    {} {first}", padded(&language.said(name), 9));
    for more in lines {
        let _ = writeln!(out, "    {:<9} {more}", "");
    }
}

pub fn summary(ran: &[TestResult], unreadable: usize, passed_over: usize, language: Language) -> String {
    let count = |status| ran.iter().filter(|ran| ran.status == status).count();
    let failed = count(TestStatus::Failed) + count(TestStatus::Broken) + unreadable;
    let others = match passed_over {
        0 => "",
        1 => " (1 YAML file is not a test and was skipped)",
        _ => " ({passed_over} YAML files are not tests and were skipped)",
    };
    let others = language.filled(others, &[("passed_over", &passed_over.to_string())]);
    let number = |number: usize| number.to_string();
    let (passed, failed, skipped) =
        (number(count(TestStatus::Passed)), number(failed), number(count(TestStatus::Skipped)));
    let values = [("passed", passed.as_str()), ("failed", &failed), ("skipped", &skipped)];
    format!("{}{others}\n", language.filled("{passed} passed, {failed} failed, {skipped} skipped", &values))
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
            return plain(&in_line(pieces));
        }
        let mark = |piece: &DiffPiece| match piece {
            DiffPiece::Same(text) => plain(text),
            DiffPiece::Expected(text) => format!("\u{1b}[9;{GREEN}m{}\u{1b}[0m", plain(text)),
            DiffPiece::Found(text) => format!("\u{1b}[4;{RED}m{}\u{1b}[0m", plain(text)),
        };
        pieces.iter().map(mark).collect()
    }
}
