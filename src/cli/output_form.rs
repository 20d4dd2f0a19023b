//! Checks what an output would replace: only a document of the same form, as this program has written it before.

use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use bcc_engine::error::EngineError;
use bcc_engine::files::read_bounded;
use bcc_engine::notebook_file::ownership::session_of;
use bcc_engine::report::format::is_report;
use bcc_lang::script::report::ReportFormat;
use bcc_runtime::notebook::export::form::ExportForm;

/// The number of bytes at the start of a file that show its form.
const START_BYTES: u64 = 8 * 1024;

/// The maximum size of a drawing that is looked at, in bytes.
const DRAWING_BYTES: u64 = 16 * 1024 * 1024;

/// The start of every flowchart of `graph`, and of a line of each.
const MERMAID_START: &str = "flowchart TB\n";
const MERMAID_STYLE: &str = "  classDef place fill:#e8f0fe,";

/// The start of every flowchart of a plan.
const PLAN_CHART_START: &str = "flowchart TD\n  plan[[\"";

/// The start of every Graphviz graph of `graph`.
const DOT_START: &str = "digraph script {\n  graph [rankdir=TB, fontname=";

/// The start of every file of SQLite.
const SQLITE: &str = "SQLite format 3\0";

/// What this program writes to a file that a person names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// A session as JSON.
    Session,
    /// A session as Markdown: its notebook or its transcript.
    Markdown,
    /// A session as an HTML page.
    Page,
    /// A notebook for Jupyter.
    Notebook,
    /// A state of the behavior protocol.
    ProtocolState,
    /// A plan as JSON.
    Plan,
    /// A plan as Markdown.
    PlanMarkdown,
    /// A plan as a Mermaid flowchart.
    PlanChart,
    Mermaid,
    Dot,
    Junit,
    CoverageTable,
    CoverageJson,
    CoveragePage,
    ManualPage,
    /// A report about a session.
    Report(ReportFormat),
}

/// Refuses to replace the file at `path`, unless it is empty or has this form. What is not a regular file is written to, not replaced.
pub fn check_output(path: &Path, form: OutputForm, force: bool) -> Result<(), EngineError> {
    let metadata = path.metadata();
    if force || !metadata.is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let shown = path.display();
    let start = read_bounded(path, START_BYTES)
        .map_err(|error| EngineError::usage(msg!("{shown} already exists and cannot be read: {error}")))?;
    let start = String::from_utf8_lossy(&start);
    if form.matches(path, &start)? {
        return Ok(());
    }
    let message = match start.starts_with(SQLITE) {
        true => msg!("{shown} is a session store or another database, and would be replaced"),
        false => msg!("{shown} already exists, is not {what}, and would be replaced", what = form.describe()),
    };
    Err(EngineError::usage(message)
        .with_help("nothing was written; choose another file, or use `--force` to replace it"))
}

impl OutputForm {
    fn describe(self) -> Message {
        Message::word(match self {
            Self::Session => "a session that was exported as JSON",
            Self::Markdown => "a session that was exported as Markdown",
            Self::Page => "a session that was exported as an HTML page",
            Self::Notebook => "a notebook that was exported",
            Self::ProtocolState => "a state that was exported in the behavior protocol",
            Self::Plan => "a plan that was exported as JSON",
            Self::PlanMarkdown => "a plan that was exported as Markdown",
            Self::PlanChart => "a plan that was exported as a Mermaid flowchart",
            Self::Mermaid => "a Mermaid flowchart",
            Self::Dot => "a Graphviz graph of a script",
            Self::Junit => "a JUnit report of tests",
            Self::CoverageTable | Self::CoverageJson | Self::CoveragePage => "a coverage report of this format",
            Self::ManualPage => "a manual page of this program",
            Self::Report(_) => "a report of this format",
        })
    }

    /// Whether a file with this start has this form.
    fn matches(self, path: &Path, start: &str) -> Result<bool, EngineError> {
        let json = |fields: &str| start.split_whitespace().collect::<String>().starts_with(fields);
        Ok(match self {
            Self::Session => json(r#"{"version":1,"session":{"#),
            Self::Markdown => session_of(path, ExportForm::Markdown).is_some() || is_transcript(start),
            Self::Page => session_of(path, ExportForm::Html).is_some(),
            Self::Notebook => session_of(path, ExportForm::Ipynb).is_some(),
            Self::ProtocolState => json(r#"{"observation":{"location":{"current_stage_id":"#),
            Self::Plan => json(r#"{"bcc_plan":"#),
            Self::PlanMarkdown => is_plan(start),
            Self::PlanChart => {
                start.starts_with(PLAN_CHART_START) && whole_drawing(path)?.lines().skip(2).all(is_chart_line)
            }
            // Its styles are at its end.
            Self::Mermaid => {
                start.starts_with(MERMAID_START)
                    && whole_drawing(path)?.lines().any(|line| line.starts_with(MERMAID_STYLE))
            }
            Self::Dot => start.starts_with(DOT_START),
            Self::Junit => start.contains("<testsuites name=\"bcc-script test\""),
            Self::CoverageTable => is_coverage_table(start),
            Self::CoverageJson => json(r#"{"version":1,"total":{"#),
            Self::CoveragePage => {
                let generator = "<meta name=\"generator\" content=\"bcc-script\">\n<title>Test coverage · ";
                start.contains(generator)
            }
            Self::ManualPage => start.contains("\n.TH bcc-script"),
            Self::Report(format) => is_report(format, start),
        })
    }
}

fn whole_drawing(path: &Path) -> Result<String, EngineError> {
    let text = read_bounded(path, DRAWING_BYTES).map_err(|error| {
        EngineError::usage(msg!("{shown} already exists and cannot be read: {error}", shown = path.display()))
    })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Whether a line of a flowchart is one of those that follow the title of a plan: a task, an arrow, the number of tasks that are left out,
/// or a style.
fn is_chart_line(line: &str) -> bool {
    let Some(line) = line.strip_prefix("  ") else { return false };
    let task = line.strip_prefix('t').map(|task| task.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    let starts_as = |text: &str, starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    task.is_some_and(|rest| starts_as(rest, &["[\"", " --> t", " -.-> t"]))
        || starts_as(line, &["plan --> t", "more[/\"… ", "classDef "])
}

/// Whether a Markdown document starts like the transcript of a session, in any language: its title, whose session it is, from when to when
/// it lasted, and its id.
fn is_transcript(start: &str) -> bool {
    let lines: Vec<&str> = start.lines().take(5).collect();
    let [title, "", user, rest @ ..] = lines.as_slice() else { return false };
    title.starts_with("# ")
        && languages().any(|language| {
            user.starts_with(&label(language, "- user: {user}", "user"))
                && rest.iter().any(|line| line.starts_with(&label(language, "- session: {id} ({status})", "id")))
        })
}

/// What a line starts with, before its first value.
fn label(language: Language, literal: &str, value: &str) -> String {
    let line = language.format(literal, &[(value, "\0"), ("status", "")]);
    line.split('\0').next().unwrap_or_default().to_owned()
}

/// Whether a Markdown document starts like a plan: its title, its number and its status.
fn is_plan(start: &str) -> bool {
    let mut lines = start.lines();
    let is_status = |line: &str| {
        let number = line.strip_prefix("Plan ").and_then(|line| line.split_once(" ("));
        number.is_some_and(|(number, status)| number.parse::<u64>().is_ok() && status.contains("): "))
    };
    lines.next().is_some_and(|title| title.starts_with("# ")) && lines.any(is_status)
}

/// Whether a text starts with the heading of the table, in any language.
fn is_coverage_table(start: &str) -> bool {
    let heading = start.lines().next().unwrap_or_default().trim_end();
    languages().any(|language| {
        let [first, last] = ["Coverage", "endings"].map(|word| language.translate(word));
        heading.starts_with(&*first) && heading.ends_with(&*last)
    })
}

fn languages() -> impl Iterator<Item = Language> {
    [Language::English, Language::Chinese].into_iter()
}

/// Refuses a directory, and a link to a file: it may lead anywhere.
pub fn check_target(path: &Path) -> Result<(), EngineError> {
    let shown = path.display();
    if path.is_dir() {
        return Err(EngineError::usage(msg!("{shown} is a directory, but the report is a single file"))
            .with_help("specify a file name, as in `--out report.md`"));
    }
    // Links to devices, such as `/dev/stdout`, are no files that could be replaced.
    if path.is_symlink() && (path.is_file() || !path.exists()) {
        return Err(EngineError::usage(msg!("{shown} is a link, and the file that it leads to would be replaced"))
            .with_help("nothing was written; specify the file itself"));
    }
    Ok(())
}
