//! The text that says what a data set has, how it was selected, and what was left out.

use std::fmt::Write;

use bcc_lang::message::language::Language;
use bcc_lang::source::render::markdown::{code_span, escape_line};
use bcc_store::rows::SessionFilter;
use jiff::Timestamp;

use crate::data_set::catalog::VariableCatalog;
use crate::data_set::request::{DataSetFormat, DataSetReport, DataSetRequest};

/// What a data set has of one script.
pub(crate) struct ScriptSummary {
    /// The folder with its files.
    pub(crate) folder: String,
    pub(crate) script: String,
    pub(crate) name: Option<String>,
    pub(crate) interviews: u64,
    pub(crate) versions: usize,
    /// Interviews by status, such as `completed: 3`.
    pub(crate) statuses: String,
    /// How many sensitive variables were left out.
    pub(crate) left_out: usize,
}

impl ScriptSummary {
    pub(crate) fn new(folder: &str, script: &str, catalog: &VariableCatalog, interviews: u64, left_out: usize) -> Self {
        let statuses = catalog.statuses.iter().map(|(status, count)| format!("{status}: {count}"));
        Self {
            folder: folder.to_owned(),
            script: script.to_owned(),
            name: catalog.name.clone(),
            interviews,
            versions: catalog.versions.len(),
            statuses: statuses.collect::<Vec<_>>().join(", "),
            left_out,
        }
    }
}

pub(crate) fn read_me(
    request: &DataSetRequest,
    report: &DataSetReport,
    scripts: &[ScriptSummary],
    created: Timestamp,
) -> String {
    let language = request.language;
    let word = |literal: &'static str| language.translate(literal);
    let mut page = format!("# {}\n\n", word("Interviews"));
    let (sessions, created) = (report.sessions.to_string(), created.strftime("%Y-%m-%d %H:%M:%S").to_string());
    let values = [("sessions", &*sessions), ("created", &*created)];
    let _ = writeln!(
        page,
        "{}\n",
        language.format("{sessions} interviews, exported by bcc-script at {created} (UTC).", &values)
    );
    filters(&mut page, &request.filter, language);
    let heads = [word("folder"), word("script"), word("interviews"), word("versions"), word("status")];
    let _ = writeln!(page, "| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()));
    for script in scripts {
        let name = script.name.as_deref().map(escape_line).unwrap_or_default();
        let cells = [
            code_span(&script.folder),
            format!("{} {}", code_span(&script.script), name),
            script.interviews.to_string(),
            script.versions.to_string(),
            script.statuses.clone(),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    copies(&mut page, report, language);
    files(&mut page, request.format, language);
    let _ = writeln!(page, "\n## {}\n", word("What was left out"));
    let left_out: usize = scripts.iter().map(|script| script.left_out).sum();
    match (request.include_sensitive, left_out) {
        (true, _) => {
            let _ = writeln!(
                page,
                "- {}",
                word("Nothing was left out or masked: the files have sensitive values and the ids of users.")
            );
        }
        (false, count) => {
            let count = count.to_string();
            let text = language.format(
                "{count} sensitive variables; where their values occur in other texts, these are masked with `***`",
                &[("count", &count)],
            );
            let _ = writeln!(page, "- {text}");
            let _ = writeln!(
                page,
                "- {}",
                word(
                    "the ids of users: `participant` is a pseudonym, the same for the same user in all exports of one person on one machine"
                )
            );
        }
    }
    if report.repeated > 0 {
        let count = report.repeated.to_string();
        let text = "{count} sessions that give the answers of another one again";
        let _ = writeln!(page, "- {}", language.format(text, &[("count", &count)]));
    }
    if report.continued > 0 {
        let count = report.continued.to_string();
        let text =
            "{count} sessions that another one continues from a step (`sessions retry --from`): the newest one counts";
        let _ = writeln!(page, "- {}", language.format(text, &[("count", &count)]));
    }
    if report.failed > 0 {
        let count = report.failed.to_string();
        let _ =
            writeln!(page, "- {}", language.format("{count} sessions that could not be read:", &[("count", &count)]));
        for (id, reason) in &report.failures {
            let _ = writeln!(page, "  - {}: {}", code_span(id), escape_line(&reason.render(language)));
        }
    }
    page
}

/// The interviews that have something of another one.
fn copies(page: &mut String, report: &DataSetReport, language: Language) {
    let forks = "{count} of the interviews are forks of another session: what was said before the fork is in both";
    let replays = "{count} of the interviews replay a recording: their replies are those of an earlier session";
    for (index, (literal, count)) in
        [(forks, report.forks), (replays, report.replays)].into_iter().filter(|(_, count)| *count > 0).enumerate()
    {
        let count = count.to_string();
        let before = if index == 0 { "\n" } else { "" };
        let _ = writeln!(page, "{before}- {}", language.format(literal, &[("count", &count)]));
    }
}

fn filters(page: &mut String, filter: &SessionFilter, language: Language) {
    let SessionFilter { id: _, script, status, user, since } = filter;
    // The id of a user is not written: it is a name.
    let user = user.as_ref().map(|_| "***".to_owned());
    let given = [("--script", script), ("--status", status), ("--user", &user), ("--since", since)];
    let given = given.iter().filter_map(|(name, value)| Some(code_span(&format!("{name} {}", value.as_ref()?))));
    let given: Vec<String> = given.collect();
    if !given.is_empty() {
        let _ = writeln!(page, "{}\n", language.format("Selected with {filters}.", &[("filters", &given.join(" "))]));
    }
}

fn files(page: &mut String, format: DataSetFormat, language: Language) {
    let _ = writeln!(page, "\n## {}\n", language.translate("Files of each folder"));
    let mut add = |name: &str, literal: &'static str| {
        let _ = writeln!(page, "- {}: {}", code_span(name), language.translate(literal));
    };
    let table = |name: &str| format!("{name}.{}", format.extension());
    match format {
        DataSetFormat::Qdpx => add(
            "interviews.qdpx",
            "a project for tools of qualitative analysis: the transcripts, coded by action and role, and a case for each interview",
        ),
        DataSetFormat::JsonLines => add(&table("interviews"), "one object for each interview, with its lists in it"),
        DataSetFormat::Csv | DataSetFormat::Parquet => {
            add(
                &table("interviews"),
                "one row for each interview; lists have tables of their own, with one row for each element",
            );
        }
    }
    if format != DataSetFormat::Qdpx {
        add(&table("messages"), "everything that was said, one row for each message");
    }
    add(
        &table("actions"),
        "which actions each interview reached, with the number of follow-ups and the branch that was taken",
    );
    add(&table("follow_ups"), "each follow-up question with its answer");
    add("follow_ups.md", "who got which follow-up");
    add("codebook.csv", "what each column means, where it is asked, and how often it is empty");
    add("transcripts/", "the transcript of each interview");
    if matches!(format, DataSetFormat::Csv | DataSetFormat::Qdpx) {
        let _ = writeln!(
            page,
            "\n{}",
            language.translate(
                "CSV files are UTF-8 with a byte order mark. A text that a spreadsheet would take for a formula has an apostrophe before it; to get the original, remove one apostrophe from each text in which `=`, `+`, `-`, `@`, their full-width forms, a tab or a line break follows the apostrophes at its start."
            )
        );
    }
}
