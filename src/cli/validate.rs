//! `validate`: findings to standard output, a summary to standard error, an exit code for programs.

use std::io::{self, IsTerminal, Write};

use crate::check::diagnostics::{DIAGNOSTICS, Page};
use crate::cli::arguments::{Deny, Findings, Validate};
use crate::cli::exit::Exit;
use crate::cli::language::said;
use crate::cli::mended::{told, untried};
use crate::cli::report;
use crate::cli::watch::watch;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::mend::mend::{MendRequest, mend};
use crate::engine::mend::rules::Rules;
use crate::engine::validate::request::{ValidateReport, ValidateRequest};
use crate::engine::validate::validate::validate as check;
use crate::source::diagnostic::Severity;
use crate::source::render::github::github;
use crate::source::render::human;
use crate::source::render::json::json;
use crate::source::render::sarif::{RuleText, sarif};

/// Runs the subcommand.
///
/// # Errors
/// As [`EngineError`] sorts them.
pub fn validate(options: &Validate, environment: &Environment) -> Result<Exit, EngineError> {
    let request = ValidateRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        scheme: options.scheme.clone(),
        rules: options.rules.clone(),
    };
    if options.watch {
        return watch(options, &request, environment);
    }
    let kept = options.fix && mend_first(&request, environment)?;
    let report = check(&request, environment)?;
    write(options, &report)?;
    Ok(if kept { Exit::Failed } else { exit(options.deny, &report) })
}

/// Mends the files, and tells of each what became of it. Says whether one could not be written.
fn mend_first(request: &ValidateRequest, environment: &Environment) -> Result<bool, EngineError> {
    let report = mend(&MendRequest { check: request.clone(), rules: Rules::All, write: true }, environment)?;
    report.mended.iter().for_each(|file| report::note(&told(file)));
    report.cut.iter().for_each(|name| report::note(&untried(name)));
    Ok(report.kept_any())
}

/// The exit code for what was found.
pub fn exit(deny: Option<Deny>, report: &ValidateReport) -> Exit {
    let counts = |severity| severity == Severity::Error || deny.is_some() && severity == Severity::Warning;
    if report.diagnostics.iter().any(|diagnostic| counts(diagnostic.severity)) { Exit::Failed } else { Exit::Done }
}

/// Writes the findings, and for people the summary. Says whether anybody reads on.
///
/// # Errors
/// When standard output cannot be written to, for another reason than that nobody reads it.
pub fn write(options: &Validate, report: &ValidateReport) -> Result<bool, EngineError> {
    write_as(options.format, options.all, report)
}

/// The same in a format; for people, with every finding or with as many as somebody reads.
///
/// # Errors
/// As [`write()`].
pub fn write_as(format: Findings, all: bool, report: &ValidateReport) -> Result<bool, EngineError> {
    let text = match format {
        Findings::Human => human::report(&report.diagnostics, &human::Options { color: color(), all, say: said }),
        Findings::Json => json(report.files, &report.diagnostics),
        Findings::Sarif => {
            let rule = |page: &'static Page| RuleText { slug: page.slug, severity: page.severity, page: page.text };
            sarif(&report.diagnostics, &DIAGNOSTICS.iter().map(rule).collect::<Vec<_>>())
        }
        Findings::Github => github(&report.diagnostics),
    };
    let mut output = io::stdout().lock();
    let read = match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => true,
        // Nobody reads on, as under `| head`: that is their business.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
        Err(error) => return Err(EngineError::failed(format!("the findings cannot be written: {error}"))),
    };
    if format == Findings::Human {
        report::note(&summary(report));
    }
    Ok(read)
}

/// Whether standard output may be coloured.
fn color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn summary(report: &ValidateReport) -> String {
    let summary = human::summary(report.files, &report.diagnostics);
    match report.passed_over {
        0 => summary,
        1 => format!("{summary} (1 YAML file is no document of bcc-script and was passed over)"),
        passed_over => {
            format!("{summary} ({passed_over} YAML files are no documents of bcc-script and were passed over)")
        }
    }
}
