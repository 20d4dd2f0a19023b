//! Explains rendering errors by the findings of `validate` in the templates.

use crate::validate::request::ValidateRequest;
use crate::validate::validate::validate;
use bcc_check::templates::deduplication::without_template_duplicates;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::{Diagnostic, sort};

/// The folder of the templates in a project.
const SYSTEM: &str = "_system/config/";

/// Replaces an error by the findings of `validate` in the templates, if they are its cause.
pub fn with_template_findings(
    error: EngineError,
    project: &Project,
    scheme: Option<&str>,
    environment: &Environment,
) -> EngineError {
    let system = project.directory.join("_system");
    if !system.is_dir() {
        return error;
    }
    let request = ValidateRequest {
        paths: vec![system],
        project: Some(project.directory.clone()),
        scheme: scheme.map(str::to_owned),
        ..ValidateRequest::default()
    };
    let Ok(report) = validate(&request, environment) else { return error };
    let found: Vec<Diagnostic> = report.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    let diagnostics_in = |message: &str| -> Vec<Diagnostic> {
        let named = |found: &&Diagnostic| {
            let name = found.file.name();
            name.find(SYSTEM).and_then(|start| name.get(start..)).is_some_and(|file| message.contains(file))
        };
        found.iter().filter(named).cloned().collect()
    };
    match error {
        EngineError::Invalid(script) => {
            let mut all = without_template_duplicates(script.clone(), &found);
            if all.len() < script.len() {
                let messages: Vec<String> = script.iter().map(|found| found.message.to_string()).collect();
                all.extend(diagnostics_in(&messages.join("\n")));
                sort(&mut all);
            }
            EngineError::Invalid(all)
        }
        // A message that names a template file is about its contents.
        EngineError::Usage { message, help } | EngineError::Failed { message, help }
            if message.to_string().contains(SYSTEM) =>
        {
            match diagnostics_in(&message.to_string()) {
                none if none.is_empty() => EngineError::Failed { message, help },
                found => EngineError::Invalid(found),
            }
        }
        other => other,
    }
}
