//! The request and the report of `validate`.

use std::path::PathBuf;

use crate::validate::services::NeededServices;
use bcc_lang::source::diagnostic::Diagnostic;

#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// Files and folders; empty for the usual folders of the project around the current directory.
    pub paths: Vec<PathBuf>,
    /// `--project`: the project of all files; by default, the nearest ancestor of each file.
    pub project: Option<PathBuf>,
    /// The directory to which the names of files in findings are relative; by default, the current one.
    pub named_from: Option<PathBuf>,
    /// `--scheme`: the template scheme to check against, instead of those of scripts and projects.
    pub scheme: Option<String>,
    /// `--rule NAME=off|warn|error`, repeatable; applied after `[rules]` of the projects.
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct ValidateReport {
    pub files: usize,
    /// The number of skipped YAML files below the folders that are not documents of the language.
    pub skipped_files: usize,
    /// The findings, by file and position.
    pub diagnostics: Vec<Diagnostic>,
    /// What scripts need that was not asked yet ([`with_missing_services`](crate::validate::services::with_missing_services)).
    pub services: Vec<NeededServices>,
}
