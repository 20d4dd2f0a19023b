//! `validate`: findings to standard output, a summary to standard error, an exit code for programs.

use crate::cli::arguments::Validate;
use crate::cli::exit::Exit;
use crate::cli::mended::{told, untried};
use crate::cli::report;
use crate::cli::watch::watch;
use bcc_authoring::fix::mend::{MendRequest, mend};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate as check;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;

/// Runs the subcommand.
///
/// # Errors
/// As [`EngineError`] sorts them.
pub fn validate(options: &Validate, environment: &Environment) -> Result<Exit, EngineError> {
    let request = ValidateRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        scheme: options.scheme.clone(),
        rules: options.reporting.rules.clone(),
    };
    if options.watch {
        return watch(options, &request, environment);
    }
    let kept = options.fix && mend_first(&request, environment)?;
    let report = check(&request, environment)?;
    options.reporting.write(&report)?;
    Ok(if kept { Exit::Failed } else { options.reporting.exit(&report) })
}

/// Mends the files, and tells of each what became of it. Says whether one could not be written.
fn mend_first(request: &ValidateRequest, environment: &Environment) -> Result<bool, EngineError> {
    let report = mend(&MendRequest { check: request.clone(), rules: Rules::All, write: true }, environment)?;
    report.mended.iter().for_each(|file| report::note(&told(file)));
    report.cut.iter().for_each(|name| report::note(&untried(name)));
    Ok(report.kept_any())
}
