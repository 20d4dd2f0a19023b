//! The start of the file walk: the given paths, or the usual folders of the project.

use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::validate::request::ValidateRequest;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{USUAL_FOLDERS, current_directory};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{absolute, given_directory, nearest};

/// The folders of a project that contain only documents of the language.
const OWN_FOLDERS: [&str; 2] = ["scripts", "skills"];

/// The paths to walk: the given ones, or the usual folders of the project.
/// Errors: if no paths are given and none of these folders exists.
pub fn roots(request: &ValidateRequest, given: Option<&Path>, here: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if !request.paths.is_empty() {
        return Ok(request.paths.clone());
    }
    let project = given.map_or_else(|| nearest(&absolute(here)), Path::to_path_buf);
    let mut roots: Vec<PathBuf> = USUAL_FOLDERS.iter().map(|name| project.join(name)).collect();
    roots.retain(|root| root.is_dir());
    if roots.is_empty() {
        let folders = Message::list(Joint::Item, USUAL_FOLDERS.iter().map(|name| Message::text(format!("{name}/"))));
        let message =
            msg!("there is nothing to check: {path} has none of the folders {folders}", path = project.display());
        return Err(
            EngineError::usage(message).with_help("specify files or folders, as in `bcc-script validate my.yaml`")
        );
    }
    Ok(roots)
}

/// The error for paths without a file to check; `skipped_files` is the number of skipped YAML files.
pub fn nothing(request: &ValidateRequest, environment: &Environment, skipped_files: usize) -> EngineError {
    let names = current_directory().and_then(|here| {
        let given = given_directory(request.project.as_deref(), environment)?;
        let names = PathNames::relative_to(request.named_from.as_ref().unwrap_or(&here).clone());
        Ok(roots(request, given.as_deref(), &here)?.iter().map(|root| names.display_name(root)).collect::<Vec<_>>())
    });
    let names = Message::list(Joint::Item, names.unwrap_or_default().into_iter().map(Message::text));
    let others = match skipped_files {
        0 => Message::default(),
        1 => msg!("; 1 YAML file was skipped"),
        more => msg!("; {more} YAML files were skipped"),
    };
    let message =
        msg!("there is nothing to check: no file in {names} is a script, a skill, a test or a template{others}");
    let help = if skipped_files == 0 {
        "check the name of the folder; script files end in `.yaml` or `.yml`"
    } else {
        "a script has an unindented `session:` line; a file given by name is checked whatever it contains"
    };
    EngineError::usage(message).with_help(help)
}

/// The folders that contain only documents of the language.
#[derive(Clone, Debug)]
pub struct OwnFolders {
    /// The project whose usual folders are walked; `None` if paths were given.
    project: Option<PathBuf>,
}

impl OwnFolders {
    pub fn of(request: &ValidateRequest, given: Option<&Path>, here: &Path) -> Self {
        let usual = || request.paths.is_empty().then(|| nearest(&absolute(here)));
        Self { project: given.map(Path::to_path_buf).or_else(usual) }
    }

    /// Whether a file, whose path is absolute, is in such a folder: in `scripts/` or `skills/` of the given project, or
    /// of the marked project around the file.
    pub fn contains(&self, real: &Path) -> bool {
        let inside = |project: &Path| {
            let mut parts = real.strip_prefix(project).ok().into_iter().flat_map(Path::components);
            let first = parts.next();
            let own = first.is_some_and(|first| OWN_FOLDERS.iter().any(|own| first.as_os_str() == *own));
            own && parts.next().is_some()
        };
        match &self.project {
            Some(project) => inside(project),
            None => inside(&nearest(real.parent().unwrap_or(real))),
        }
    }
}
