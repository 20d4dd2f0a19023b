//! `validate`: writes findings to standard output and a summary to standard error, and returns an exit code.

use std::path::PathBuf;

use clap::Args;

use crate::cli::async_runtime::wait_for;
use crate::cli::exit::{Exit, FINDINGS_CODES};
use crate::cli::findings::Reporting;
use crate::cli::fixed_files::{rejected_line, result_line, untried_line};
use crate::cli::report;
use crate::cli::watch::watch;
use bcc_authoring::fix::fix::{FixRequest, fix};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::services::with_missing_services;
use bcc_authoring::validate::validate::validate as check;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;

#[derive(Debug, Args)]
#[command(after_help = FINDINGS_CODES)]
pub struct ValidateArgs {
    /// Files and directories to check [default: scripts/, skills/, tests/ and _system/ of the current project]
    #[arg(value_name = "FILE | DIR")]
    pub paths: Vec<PathBuf>,
    /// Project directory of all files [default: BCC_PROJECT, otherwise for each file the nearest parent with
    /// bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Check against the templates of this scheme, whatever scripts and projects specify
    #[arg(long, value_name = "SCHEME")]
    pub scheme: Option<String>,
    #[command(flatten)]
    pub reporting: Reporting,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long, conflicts_with = "watch")]
    pub trust: bool,
    /// Check again whenever a file changes, until interrupted with Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// Apply the safe fixes, then report what is left
    #[arg(long, conflicts_with = "watch")]
    pub fix: bool,
}

pub fn validate(options: &ValidateArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let request = ValidateRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        named_from: None,
        scheme: options.scheme.clone(),
        rules: options.reporting.rules.clone(),
    };
    if options.watch {
        return watch(&options.reporting, &request, environment);
    }
    let has_unfixed = options.fix && fix_files(&request, environment)?;
    let checked = check(&request, environment)?;
    let report = wait_for(async { Ok(with_missing_services(checked, options.trust, environment).await) })?;
    options.reporting.write(&report)?;
    Ok(if has_unfixed { Exit::Failed } else { options.reporting.exit(&report) })
}

/// Fixes the files, and reports the result of each. Returns whether a file could not be written.
fn fix_files(request: &ValidateRequest, environment: &Environment) -> Result<bool, EngineError> {
    let report = fix(&FixRequest { check: request.clone(), rules: Rules::All, write: true }, environment)?;
    report.fixed.iter().for_each(|file| report::note(&result_line(file)));
    report.incomplete.iter().for_each(|name| report::note(&untried_line(name)));
    report.rejected.iter().for_each(|finding| report::note(&rejected_line(finding)));
    Ok(report.any_not_written())
}
