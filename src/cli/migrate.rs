//! `migrate`: updates scripts from legacy to current syntax, without any other change.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::fixed_files::{rejected_line, result_line, untried_line};
use crate::cli::report;
use crate::cli::terminal::color;
use bcc_authoring::fix::diff::{DiffLineKind, diff};
use bcc_authoring::fix::fix::{FixReport, FixRequest, FixedFile, fix};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::source::render::visible::visible;

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Files and directories to migrate [default: scripts/, skills/, tests/ and _system/ of the current project]
    #[arg(value_name = "FILE | DIR")]
    pub paths: Vec<PathBuf>,
    /// Write the changes instead of only showing them
    #[arg(long)]
    pub write: bool,
    /// Write nothing, and fail if a file would change or must be changed by hand
    #[arg(long, conflicts_with = "write")]
    pub check: bool,
    /// Project directory of all files [default: BCC_PROJECT, otherwise for each file the nearest parent with
    /// bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

pub fn migrate(options: &MigrateArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let check = ValidateRequest {
        paths: options.paths.clone(),
        project: options.project.clone(),
        ..ValidateRequest::default()
    };
    let report = fix(&FixRequest { check, rules: Rules::LegacyForms, write: options.write }, environment)?;
    if options.write || options.check {
        let line = |file: &FixedFile| if options.write { result_line(file) } else { preview_line(file) };
        report.fixed.iter().for_each(|file| report::note(&line(file)));
    } else {
        print_changes(&report)?;
    }
    report::diagnostics(&report.remaining);
    report.incomplete.iter().for_each(|name| report::note(&untried_line(name)));
    report.not_documents.iter().for_each(|file| {
        report::note(&msg!("{file} is not a script, a skill, a test or a template: nothing was migrated in it"));
    });
    report.rejected.iter().for_each(|finding| report::note(&rejected_line(finding)));
    report::note(&summary(&report, options));
    let left = !report.remaining.is_empty() || report.any_not_written();
    // A file that cannot be read, or is not a document, was not checked, so the exit code must not indicate success.
    let unread =
        !report.not_documents.is_empty() || report.remaining.iter().any(|finding| finding.rule == "unreadable-file");
    let fails = unread || if options.check { left || !report.fixed.is_empty() } else { options.write && left };
    Ok(if fails { Exit::Failed } else { Exit::Done })
}

fn preview_line(file: &FixedFile) -> Message {
    match file.fixed_rules.len() {
        1 => msg!("{}: 1 legacy form", file.after.name()),
        count => msg!("{}: {count} legacy forms", file.after.name()),
    }
}

fn print_changes(report: &FixReport) -> Result<(), EngineError> {
    let (terminal, color) = (io::stdout().is_terminal(), color());
    let mut output = io::BufWriter::new(io::stdout().lock());
    let mut write = || {
        for file in &report.fixed {
            for (kind, line) in diff(&file.before, &file.after) {
                // A program gets the bytes of the file; a terminal must not get control characters.
                let line = if terminal { visible(&line) } else { line };
                match kind {
                    DiffLineKind::Head if color => write!(output, "\u{1b}[1m{line}\u{1b}[0m")?,
                    DiffLineKind::Before if color => write!(output, "\u{1b}[31m{line}\u{1b}[0m")?,
                    DiffLineKind::After if color => write!(output, "\u{1b}[32m{line}\u{1b}[0m")?,
                    _ => output.write_all(line.as_bytes())?,
                }
            }
        }
        output.flush()
    };
    match write() {
        // A closed pipe, as with `| head`, is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(EngineError::failed(msg!("the changes cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// The summary of all files. Each message is a complete sentence, for the translations.
fn summary(report: &FixReport, options: &MigrateArgs) -> Message {
    let files = match report.files {
        1 => msg!("1 file"),
        count => msg!("{count} files"),
    };
    let (nothing_fixed, nothing_left) = (report.fixed.is_empty(), report.remaining.is_empty());
    if report.files > 0 && report.not_documents.len() == report.files {
        return msg!("{files} checked: nothing to migrate");
    }
    if nothing_fixed && nothing_left {
        return msg!("{files} checked: no legacy forms found");
    }
    let changed = report.fixed.iter().filter(|file| file.write_error.is_none()).count();
    match (changed, options.write, nothing_left) {
        (0, true, true) => msg!("{files} checked: none changed"),
        (0, true, false) => msg!("{files} checked: none changed; the items above must be changed by hand"),
        (count, true, true) => msg!("{files} checked: {count} changed"),
        (count, true, false) => {
            msg!("{files} checked: {count} changed; the items above must be changed by hand")
        }
        (0, false, _) => msg!("{files} checked: none would change; the items above must be changed by hand"),
        (count, false, true) if options.check => msg!("{files} checked: {count} would change"),
        (count, false, false) if options.check => {
            msg!("{files} checked: {count} would change; the items above must be changed by hand")
        }
        (count, false, true) => msg!("{files} checked: {count} would change; use `--write` to write the changes"),
        (count, false, false) => msg!(
            "{files} checked: {count} would change; the items above must be changed by hand; use `--write` to write the rest"
        ),
    }
}
