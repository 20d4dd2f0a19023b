//! What is wrong with templates that cannot be rendered, as `validate` tells it.

use crate::validate::request::ValidateRequest;
use crate::validate::validate::validate;
use bcc_check::templates::deduplication::without_what_templates_tell;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::{Diagnostic, sort};

/// Where the templates of a project lie.
const SYSTEM: &str = "_system/config/";

/// The same error, with what `validate` finds in the templates of the project, where that is why.
pub fn explained(
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
        rules: vec![],
    };
    let Ok(report) = validate(&request, environment) else { return error };
    let found: Vec<Diagnostic> = report.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    let about = |message: &str| -> Vec<Diagnostic> {
        let named = |found: &&Diagnostic| {
            let name = found.file.name();
            name.find(SYSTEM).and_then(|start| name.get(start..)).is_some_and(|file| message.contains(file))
        };
        found.iter().filter(named).cloned().collect()
    };
    match error {
        EngineError::Invalid(script) => {
            let mut all = without_what_templates_tell(script.clone(), &found);
            if all.len() < script.len() {
                let told: Vec<String> = script.iter().map(|found| found.message.to_string()).collect();
                all.extend(about(&told.join("\n")));
                sort(&mut all);
            }
            EngineError::Invalid(all)
        }
        // What names a file of a template is about what stands in it.
        EngineError::Usage { message, help } | EngineError::Failed { message, help }
            if message.to_string().contains(SYSTEM) =>
        {
            match about(&message.to_string()) {
                none if none.is_empty() => EngineError::Failed { message, help },
                found => EngineError::Invalid(found),
            }
        }
        other => other,
    }
}
