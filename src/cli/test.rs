//! `test`: conversation tests are found, run and reported.

use std::io::{self, IsTerminal, Write};

use crate::cli::arguments::{Results, Test};
use crate::cli::exit::Exit;
use crate::cli::report;
use crate::cli::test_json::json;
use crate::cli::test_report::{case, summary};
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::trial::find::find;
use crate::engine::trial::request::TrialRequest;
use crate::engine::trial::run::run;
use crate::source::diagnostic::sort;

/// Runs the subcommand.
///
/// # Errors
/// As [`EngineError`] sorts them: that there is nothing to test is `Usage`.
pub fn test(options: &Test, environment: &Environment) -> Result<Exit, EngineError> {
    let request = TrialRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        filter: options.filter.clone(),
        model: options.model.clone(),
        jobs: options.jobs.map(usize::from),
        fail_fast: options.fail_fast,
        trust: options.trust,
        update: options.update,
    };
    let tests = find(&request, environment)?;
    let outcome = run(&tests, &request, environment)?;
    if outcome.ran.is_empty() && !tests.files.is_empty() {
        let message =
            format!("there is nothing to test: no test has `{}`", options.filter.as_deref().unwrap_or_default());
        let help = "`--filter` takes a part of a test's name, of a case's, or of the path of its file";
        return Err(EngineError::usage(message).with_help(help));
    }
    let mut found = tests.diagnostics.clone();
    found.extend(outcome.untried.iter().flat_map(|untried| untried.diagnostics.iter().cloned()));
    sort(&mut found);
    match options.format {
        Results::Human => {
            report::diagnostics(&found);
            let color = color();
            let mut text = String::new();
            for ran in &outcome.ran {
                text.push_str(&case(ran, color));
            }
            text.push_str(&summary(&outcome.ran, tests.unreadable(), tests.passed_over));
            write(&text)?;
        }
        Results::Json => write(&json(&outcome.ran, &found))?,
    }
    let failed = outcome.ran.iter().any(|ran| ran.failed()) || tests.unreadable() > 0;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn write(text: &str) -> Result<(), EngineError> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        // Nobody reads on, as under `| head`: that is their business.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(EngineError::failed(format!("the report cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Whether standard output may be coloured.
fn color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
