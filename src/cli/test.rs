//! `test`: finds, runs and reports conversation tests.

use bcc_lang::message::msg;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::exit::{Exit, TEST_CODES};
use crate::cli::language::{chosen, filled};
use crate::cli::output_form::{OutputForm, check_output};
use crate::cli::print::{self, save};
use crate::cli::report;
use crate::cli::terminal::color;
use crate::cli::test_report::{case, summary};
use bcc_authoring::test_runner::coverage::coverage::Coverage;
use bcc_authoring::test_runner::coverage::html::page::html;
use bcc_authoring::test_runner::coverage::json::json as coverage_json;
use bcc_authoring::test_runner::coverage::table::table;
use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::json::json;
use bcc_authoring::test_runner::junit::report::junit;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::result::TestResult;
use bcc_authoring::test_runner::run::run;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::files::write::is_same_file;
use bcc_engine::project::absolute;
use bcc_lang::message::language::Language;
use bcc_lang::source::render::visible::visible_json;

#[derive(Debug, Args)]
#[command(after_help = TEST_CODES)]
pub struct TestArgs {
    /// Test files and directories to run [default: tests/ of the current project]
    #[arg(value_name = "FILE | DIR")]
    pub paths: Vec<PathBuf>,
    /// Run only tests with this text in their name, in the name of a case or in the path of the file
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Project directory of all scripts [default: BCC_PROJECT, otherwise for each script the nearest parent with
    /// bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Maximum number of conversations to run in parallel [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: Option<u8>,
    /// Output format of the results
    #[arg(long, value_enum, default_value_t = ResultsFormat::Human)]
    pub format: ResultsFormat,
    /// Also write the results to this file as JUnit XML; missing directories are created
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Report which phases, topics, actions, routes and branches ran [default format: table]
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub coverage: Option<TestFormat>,
    /// Write the coverage report to this file instead of standard output; missing directories are created
    #[arg(long, value_name = "FILE", requires = "coverage")]
    pub coverage_out: Option<PathBuf>,
    /// Replace existing files whatever they contain, not only documents of the same form
    #[arg(long)]
    pub force: bool,
    /// Fail if the coverage is below this percentage
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    pub coverage_min: Option<u64>,
    /// Stop after the first failure
    #[arg(long)]
    pub fail_fast: bool,
    /// Write the snapshots that are missing or differ
    #[arg(long)]
    pub update: bool,
    /// Model for tests that do not specify the replies of the model [default: `offline`]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Template scheme for all tests, instead of that of the test or the script
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long)]
    pub trust: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For the terminal
    Table,
    /// One JSON document
    Json,
    /// An HTML page that shows the scripts and what ran
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResultsFormat {
    /// For people
    Human,
    /// One JSON document
    Json,
}

/// Errors: `Usage` when there is nothing to test.
pub fn test(options: &TestArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let request = TestRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        named_from: None,
        filter: options.filter.clone(),
        model: options.model.clone(),
        scheme: options.scheme.clone(),
        jobs: options.jobs.map(usize::from),
        fail_fast: options.fail_fast,
        trust: options.trust,
        update: options.update,
    };
    check_outputs(options)?;
    let tests = find(&request, environment)?;
    let outcome = run(&tests, &request, environment)?;
    if outcome.results.is_empty() && !tests.files.is_empty() {
        let message = msg!("nothing to test: no test matches `{}`", options.filter.as_deref().unwrap_or_default());
        let help = "`--filter` takes part of the name of a test or a case, or of the path of its file";
        return Err(EngineError::usage(message).with_help(help));
    }
    let found = outcome.findings(&tests);
    // A coverage document on standard output must be the only output there. It cannot be requested together with another document.
    let to_stderr =
        options.coverage_out.is_none() && matches!(options.coverage, Some(TestFormat::Json | TestFormat::Html));
    match options.format {
        ResultsFormat::Human => {
            report::diagnostics(&found);
            let color = color();
            let mut text = String::new();
            for ran in &outcome.results {
                text.push_str(&case(ran, color, chosen()));
            }
            text.push_str(&summary(&outcome.results, tests.unreadable(), tests.skipped_files, chosen()));
            if to_stderr { write_to_stderr(&text) } else { write(&text)? }
        }
        ResultsFormat::Json => write(&json(&outcome.results, tests.unreadable(), &found, &outcome.stale))?,
    }
    if let Some(file) = &options.junit {
        let describe = |ran: &TestResult| case(ran, false, Language::English);
        save(file, junit(&outcome.results, &tests.unreadable_files(), &describe)?.as_bytes())?;
    }
    for file in &outcome.stale {
        report::note(&msg!("note: no test uses the snapshot {file} any more; delete it"));
    }
    let is_enough = check_coverage(options, &outcome.results)?;
    let failed = outcome.results.iter().any(|ran| ran.failed()) || tests.unreadable() > 0 || !is_enough;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// Checks where the reports go and what they would replace, before any test runs.
fn check_outputs(options: &TestArgs) -> Result<(), EngineError> {
    if options.format == ResultsFormat::Json && options.coverage.is_some() && options.coverage_out.is_none() {
        let message = msg!("`--format json` and `--coverage` cannot both write to standard output");
        return Err(EngineError::usage(message).with_help("write the coverage to a file with `--coverage-out FILE`"));
    }
    if let (Some(junit), Some(coverage)) = (&options.junit, &options.coverage_out)
        && is_one_file(junit, coverage)
    {
        let message = msg!("`--junit` and `--coverage-out` name the same file: {}", junit.display());
        return Err(EngineError::usage(message).with_help("write each report to a file of its own"));
    }
    if let Some(file) = &options.junit {
        check_output(file, OutputForm::Junit, options.force)?;
    }
    let form = match options.coverage {
        Some(TestFormat::Json) => OutputForm::CoverageJson,
        Some(TestFormat::Html) => OutputForm::CoveragePage,
        Some(TestFormat::Table) | None => OutputForm::CoverageTable,
    };
    options.coverage_out.as_deref().map_or(Ok(()), |file| check_output(file, form, options.force))
}

/// Whether two paths are one file, also if it does not exist yet. A device such as `/dev/stdout` takes both reports.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let is_device = one.exists() && !one.is_file();
    !is_device && (is_same_file(one, other) || future_path(one) == future_path(other))
}

/// The absolute path of a file that may not exist yet, with the links of the existing folders resolved.
fn future_path(path: &Path) -> PathBuf {
    let path = absolute(path);
    let existing = path.ancestors().find(|part| part.exists()).unwrap_or(&path);
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    // Without a rest, the separator at the end would make another path.
    if rest.as_os_str().is_empty() { path } else { absolute(existing).join(rest) }
}

/// Reports the coverage, if requested. Returns whether it reaches the required minimum.
fn check_coverage(options: &TestArgs, ran: &[TestResult]) -> Result<bool, EngineError> {
    if options.coverage.is_none() && options.coverage_min.is_none() {
        return Ok(true);
    }
    let mut coverage = Coverage::default();
    for ran in ran {
        match &ran.program {
            // A test that was skipped or could not be run has a script, but no session.
            Some(program) if ran.journal.is_empty() => coverage.register(program),
            Some(program) => coverage.add(program, &ran.events()),
            None => {}
        }
    }
    let names = PathNames::relative_to(current_directory()?);
    let coverage = coverage.renamed(|name| names.display_name(Path::new(name)));
    if let Some(format) = options.coverage {
        print_coverage(options, format, &coverage)?;
    }
    let total = coverage.total();
    let Some(minimum) = options.coverage_min.filter(|minimum| !total.reaches(*minimum)) else { return Ok(true) };
    let (percent, covered, all) = (total.percent(), total.covered.to_string(), total.total.to_string());
    let values = [("percent", percent.as_str()), ("covered", &covered), ("all", &all), ("least", &minimum.to_string())];
    let literal = "error: coverage is {percent} ({covered} of {all}), but `--coverage-min` requires {least}%";
    report::note_untranslated(&filled(literal, &values));
    if options.coverage.is_none() {
        report::note("help: `--coverage` shows what never ran");
    }
    Ok(false)
}

fn print_coverage(options: &TestArgs, format: TestFormat, coverage: &Coverage) -> Result<(), EngineError> {
    let text = match format {
        TestFormat::Table => table(coverage, options.coverage_out.is_none() && color(), chosen()),
        TestFormat::Json => visible_json(&format!("{:#}\n", coverage_json(coverage))).into_owned(),
        TestFormat::Html => html(coverage),
    };
    match &options.coverage_out {
        Some(file) => save(file, text.as_bytes()),
        None => write(&text),
    }
}

fn write(text: &str) -> Result<(), EngineError> {
    let written = print::write(text.as_bytes()).map_err(|error| msg!("the report cannot be written: {error}"));
    written.map(drop).map_err(EngineError::failed)
}

fn write_to_stderr(text: &str) {
    // A closed standard error is not a failure.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
