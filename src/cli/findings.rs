//! The options for reporting findings that `validate` and `templates check` have in common.

use crate::cli::language::chosen;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::{Args, ValueEnum};

use crate::cli::exit::Exit;
use crate::cli::print::write;
use crate::cli::report;
use crate::cli::terminal::color;
use bcc_authoring::validate::request::ValidateReport;
use bcc_check::diagnostics::{DIAGNOSTICS, Page};
use bcc_engine::error::EngineError;
use bcc_lang::message::language::Language;
use bcc_lang::source::diagnostic::Severity;
use bcc_lang::source::render::github::github;
use bcc_lang::source::render::human;
use bcc_lang::source::render::json::json;
use bcc_lang::source::render::sarif::{RuleText, sarif};
use bcc_lang::source::render::visible::visible_json;

/// How findings are told, and which of them count.
#[derive(Clone, Debug, Args)]
pub struct Reporting {
    /// Output format of the diagnostics
    #[arg(long, value_enum, default_value_t = FindingsFormat::Human)]
    pub format: FindingsFormat,
    /// Also fail on diagnostics that are not errors
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub deny: Option<Deny>,
    /// Set the level of a diagnostic; can be repeated
    #[arg(long = "rule", value_name = "NAME=off|warn|error")]
    pub rules: Vec<String>,
    /// Show all diagnostics instead of only the first ones
    #[arg(long)]
    pub all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// For people
    Human,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Fail on warnings
    Warnings,
}

impl Reporting {
    pub fn exit(&self, report: &ValidateReport) -> Exit {
        let counts = |severity| severity == Severity::Error || self.deny.is_some() && severity == Severity::Warning;
        if report.diagnostics.iter().any(|diagnostic| counts(diagnostic.severity)) { Exit::Failed } else { Exit::Done }
    }

    /// Writes the findings, and in the format for people also a summary. Returns whether standard output is still open.
    pub fn write(&self, report: &ValidateReport) -> Result<bool, EngineError> {
        let text = match self.format {
            FindingsFormat::Human => human::report(
                &report.diagnostics,
                &human::Options { color: color(), all: self.all, language: chosen() },
            ),
            FindingsFormat::Json => visible_json(&json(report.files, &report.diagnostics)).into_owned(),
            FindingsFormat::Sarif => {
                let rule = |page: &'static Page| RuleText {
                    slug: page.slug,
                    severity: page.severity,
                    page: page.text(Language::English),
                };
                let rules: Vec<RuleText<'_>> = DIAGNOSTICS.iter().map(rule).collect();
                visible_json(&sarif(&report.diagnostics, &rules)).into_owned()
            }
            FindingsFormat::Github => github(&report.diagnostics),
        };
        let is_open = write(text.as_bytes())
            .map_err(|error| EngineError::failed(msg!("the findings cannot be written: {error}")))?;
        if self.format == FindingsFormat::Human {
            report::note(&summary(report));
        }
        Ok(is_open)
    }
}

fn summary(report: &ValidateReport) -> Message {
    let summary = human::summary(report.files, &report.diagnostics);
    match report.skipped_files {
        0 => summary,
        1 => msg!("{summary} (1 YAML file is not a bcc-script document and was skipped)"),
        skipped_files => {
            msg!("{summary} ({skipped_files} YAML files are not bcc-script documents and were skipped)")
        }
    }
}
