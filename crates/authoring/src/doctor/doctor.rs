//! The `doctor` command: runs all checks in order of dependency.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::doctor::finding::DoctorFinding;
use crate::doctor::machine::Terminals;
use crate::doctor::{configuration, editors, kernels, machine, prompts, stores};
use crate::validate::request::ValidateRequest;
use crate::validate::validate::validate;
use bcc_engine::config::kinds::kinds;
use bcc_engine::environment::Environment;
use bcc_engine::models::check::{ModelCheck, check, model_names};
use bcc_engine::project::{CONFIG_FILE, Project, absolute, given_directory, is_marked, nearest};
use bcc_engine::store_access::store_place;
use bcc_lang::message::language::Language;
use bcc_lang::source::diagnostic::Severity;

#[derive(Clone, Debug, Default)]
pub struct DoctorRequest {
    pub current_directory: PathBuf,
    pub project: Option<PathBuf>,
    pub store: Option<PathBuf>,
    pub ask: bool,
    pub language: Language,
    /// Whether `--lang` selects the language.
    pub language_requested: bool,
    pub terminals: Terminals,
}

/// Runs all checks. Whatever cannot be read becomes a finding, never an error.
pub async fn doctor(request: &DoctorRequest, environment: &Environment) -> Vec<DoctorFinding> {
    let mut found = vec![DoctorFinding::ok("release", concat!("bcc-script ", env!("CARGO_PKG_VERSION")))];
    let directory = directory(request, environment, &mut found);
    let project = project(&directory, environment, &mut found);
    let own_kinds = project.as_ref().map(|project| kinds(&project.config)).unwrap_or_default();
    match project {
        Some(project) => {
            found.extend(configuration::models(&project, environment));
            found.extend(check_models(request, &project, environment).await);
            found.extend(prompts::schemes(&project));
            found.extend(kernels::allowed(&project, environment));
        }
        None => {
            found.push(DoctorFinding::note("models", "the models are unknown because the configuration cannot be read"))
        }
    }
    found.extend(scripts(&directory, environment));
    // The location of the store does not depend on the configuration, which may be invalid.
    let default_project = Project::unconfigured(directory.clone());
    found.extend(stores::store(&store_place(&default_project, environment, request.store.as_deref())).await);
    found.extend(editors::editors(&directory, &own_kinds));
    found.extend(machine::surroundings(&request.terminals, request.language, request.language_requested, environment));
    found.extend(kernels::kernels(&default_project, environment));
    found
}

fn directory(request: &DoctorRequest, environment: &Environment, found: &mut Vec<DoctorFinding>) -> PathBuf {
    let source = if request.project.is_some() { "--project" } else { "BCC_PROJECT" };
    match given_directory(request.project.as_deref(), environment) {
        Ok(Some(given)) => {
            found
                .push(DoctorFinding::ok("project", msg!("{path}, as specified by `{source}`", path = given.display())));
            return given;
        }
        Err(error) => found.push(
            DoctorFinding::problem("project", error.to_message())
                .with_help(msg!("fix `{source}`; the current directory was checked instead")),
        ),
        Ok(None) => {}
    }
    let directory = nearest(&absolute(&request.current_directory));
    let found_marks = [CONFIG_FILE, "_system", ".bcc"].into_iter().filter(|name| directory.join(name).exists());
    found.push(if is_marked(&directory) {
        DoctorFinding::ok("project", msg!("{}, because it has {}", directory.display(), Message::values(found_marks)))
    } else {
        let message = msg!(
            "there is no {CONFIG_FILE}, _system/ or .bcc/ in this directory or above it: {path} is used as the project",
            path = directory.display()
        );
        DoctorFinding::note("project", message)
            .with_help("`bcc-script init` creates a project; scripts also run without one")
    });
    directory
}

/// The project with its configuration, or `None` if the configuration cannot be read.
fn project(directory: &Path, environment: &Environment, found: &mut Vec<DoctorFinding>) -> Option<Project> {
    match Project::in_directory(directory.to_path_buf(), false, environment) {
        Ok(project) => {
            found.extend(configuration::configuration(&project, environment));
            Some(project)
        }
        Err(error) => {
            found
                .push(DoctorFinding::problem("configuration", error.to_message()).with_any_help(error.help().cloned()));
            None
        }
    }
}

async fn check_models(request: &DoctorRequest, project: &Project, environment: &Environment) -> Vec<DoctorFinding> {
    let names = model_names(project, environment);
    if names.is_empty() {
        return vec![];
    }
    if !request.ask {
        let note = DoctorFinding::note("models", "it was not checked whether the models answer");
        return vec![note.with_help(
            "`bcc-script doctor --ask` sends each model a short prompt, `bcc-script models check` checks everything that it supports",
        )];
    }
    let checked = match check(project, environment, &names).await {
        Ok(checked) => checked,
        Err(error) => {
            return vec![DoctorFinding::problem("models", error.to_message()).with_any_help(error.help().cloned())];
        }
    };
    checked.iter().map(answer).collect()
}

fn answer(checked: &ModelCheck) -> DoctorFinding {
    let name = &checked.name;
    if checked.ok {
        return DoctorFinding::ok("models", msg!("model `{name}` answers"));
    }
    let reason = checked.error.as_ref().map_or_else(|| Message::word("it did not answer"), Clone::clone);
    DoctorFinding::problem("models", msg!("model `{name}` cannot be used: {reason}"))
        .with_any_help(checked.help.clone())
}

/// Counts the documents and the findings of `validate`.
fn scripts(directory: &Path, environment: &Environment) -> Vec<DoctorFinding> {
    let request = ValidateRequest { project: Some(directory.to_path_buf()), ..ValidateRequest::default() };
    let report = match validate(&request, environment) {
        Ok(report) => report,
        Err(error) => {
            return vec![DoctorFinding::note("scripts", error.to_message()).with_any_help(error.help().cloned())];
        }
    };
    let count = |severity| report.diagnostics.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let message = msg!(
        "scripts, skills, tests and templates were checked (files: {}, errors: {errors}, warnings: {warnings})",
        report.files
    );
    let help = "`bcc-script validate` shows them";
    vec![match (errors, warnings) {
        (0, 0) => DoctorFinding::ok("scripts", message),
        (0, _) => DoctorFinding::note("scripts", message).with_help(help),
        _ => DoctorFinding::problem("scripts", message).with_help(help),
    }]
}
