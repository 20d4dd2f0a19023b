//! What `validate` is asked for, and what it gives.

use std::path::PathBuf;

use bcc_lang::source::diagnostic::Diagnostic;

#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// Files and folders; none for the usual folders of the project around the current directory.
    pub paths: Vec<PathBuf>,
    /// `--project`: the project of all files; without one, each file belongs to the nearest above it.
    pub project: Option<PathBuf>,
    /// `--scheme`: the template scheme to check against, in the place of what scripts and projects say.
    pub scheme: Option<String>,
    /// `--rule NAME=off|warn|error`, each; they count after `[rules]` of the projects.
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct ValidateReport {
    pub files: usize,
    /// How many YAML files below the folders are none of the language's documents and were passed over.
    pub passed_over: usize,
    /// The findings, by file and position.
    pub diagnostics: Vec<Diagnostic>,
}
