//! The findings of `validate` that concern the templates of a project.

use std::path::{Path, PathBuf};

use crate::templates::catalog::{CatalogEntry, TemplateCatalog};
use crate::validate::request::{ValidateReport, ValidateRequest};
use crate::validate::validate::validate;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::template::layers::{TemplateLayer, own_scheme};

/// The folders of a project that contain prompts and reply schemas.
const FOLDERS: [&str; 2] = ["_system", "schemas/replies"];

/// Checks the templates of the project in this directory: those of all schemes, or those that one scheme uses. The
/// whole project is read, so that the variables of its scripts are known.
/// Errors: `Usage` if there is no such scheme, or the project has no templates of its own; otherwise as [`validate`].
pub fn check(
    directory: &Path,
    scheme: Option<&str>,
    rules: &[String],
    environment: &Environment,
) -> Result<ValidateReport, EngineError> {
    let catalog = TemplateCatalog::of(directory);
    if let Some(scheme) = scheme {
        catalog.check_scheme(scheme)?;
    }
    let names = PathNames::relative_to(current_directory()?);
    let own: Vec<&CatalogEntry> = catalog.files().iter().filter(|file| !file.is_built_in()).collect();
    let no_templates = || {
        EngineError::usage("there is nothing to check: this project has no templates of its own").with_help(
            "all templates are built in; `bcc-script templates new SCHEME` copies them into the project, where you can change them",
        )
    };
    if !directory.join("_system").is_dir() {
        return Err(no_templates());
    }
    let request =
        ValidateRequest { project: Some(directory.to_path_buf()), rules: rules.to_vec(), ..ValidateRequest::default() };
    let ValidateReport { mut diagnostics, .. } = validate(&request, environment)?;
    let folders = FOLDERS.map(|folder| directory.join(folder));
    let others = |file: &&CatalogEntry| {
        let layer = TemplateLayer::of(&file.place);
        layer == Some(TemplateLayer::Scheme)
            && own_scheme(scheme).is_none_or(|one| file.place != format!("custom/{one}"))
    };
    let excluded: Vec<String> = match scheme {
        Some(_) => own.iter().copied().filter(others).map(CatalogEntry::shown).collect(),
        None => Vec::new(),
    };
    let is_relevant = |found: &Diagnostic| {
        let path = absolute_of(&names, found.file.name());
        let in_folders = path.as_deref().is_some_and(|path| folders.iter().any(|folder| path.starts_with(folder)));
        let in_project = path.as_deref().and_then(|path| path.strip_prefix(directory).ok());
        in_folders && !in_project.is_some_and(|path| excluded.iter().any(|out| Path::new(out) == path))
    };
    diagnostics.retain(is_relevant);
    if own.is_empty() && diagnostics.is_empty() {
        return Err(no_templates());
    }
    Ok(ValidateReport { files: own.len() - excluded.len(), skipped_files: 0, diagnostics, services: Vec::new() })
}

fn absolute_of(names: &PathNames, name: &str) -> Option<PathBuf> {
    Some(names.folder(name)?.join(Path::new(name).file_name()?))
}
