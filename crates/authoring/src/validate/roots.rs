//! Where the walk begins: what was named, else the usual folders of the project.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::validate::request::ValidateRequest;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{USUAL_FOLDERS, here};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{absolute, given_directory, nearest};

/// What of a project is for documents of the language alone: every YAML file in it is meant as one.
const OWN_FOLDERS: [&str; 2] = ["scripts", "skills"];

/// What is to be walked: what was named, else the usual folders of the project.
/// Errors: when nothing was named and there is none of them.
pub fn roots(request: &ValidateRequest, given: Option<&Path>, here: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if !request.paths.is_empty() {
        return Ok(request.paths.clone());
    }
    let project = given.map_or_else(|| nearest(&absolute(here)), Path::to_path_buf);
    let mut roots: Vec<PathBuf> = USUAL_FOLDERS.iter().map(|name| project.join(name)).collect();
    roots.retain(|root| root.is_dir());
    if roots.is_empty() {
        let folders = USUAL_FOLDERS.map(|name| format!("{name}/")).join(", ");
        let message =
            msg!("there is nothing to check: {path} has none of the folders {folders}", path = project.display());
        return Err(
            EngineError::usage(message).with_help("specify files or folders, as in `bcc-script validate my.yaml`")
        );
    }
    Ok(roots)
}

/// The error that no file is to be checked in what was named; `passed_over` YAML files are no documents of the language.
pub fn nothing(request: &ValidateRequest, environment: &Environment, passed_over: usize) -> EngineError {
    let names = here().and_then(|here| {
        let given = given_directory(request.project.as_deref(), environment)?;
        let names = PathNames::seen_from(here.clone());
        Ok(roots(request, given.as_deref(), &here)?.iter().map(|root| names.shown(root)).collect::<Vec<_>>())
    });
    let names = names.unwrap_or_default().join(", ");
    let others = match passed_over {
        0 => Message::default(),
        1 => msg!("; 1 YAML file was skipped"),
        more => msg!("; {more} YAML files were skipped"),
    };
    let message =
        msg!("there is nothing to check: no file in {names} is a script, a skill, a test or a template{others}");
    let help = if passed_over == 0 {
        "check the name of the folder; script files end in `.yaml` or `.yml`"
    } else {
        "a script has an unindented `session:` line; a file given by name is checked whatever it contains"
    };
    EngineError::usage(message).with_help(help)
}

/// The folders in which no YAML file is another program's.
#[derive(Clone, Debug)]
pub struct OwnFolders {
    /// The project whose usual folders are walked; none where files and folders were named.
    project: Option<PathBuf>,
}

impl OwnFolders {
    pub fn of(request: &ValidateRequest, given: Option<&Path>, here: &Path) -> Self {
        let usual = || request.paths.is_empty().then(|| nearest(&absolute(here)));
        Self { project: given.map(Path::to_path_buf).or_else(usual) }
    }

    /// Whether a file, whose path is absolute, lies in one: in `scripts/` or `skills/` of the project of the call, or of the
    /// one that is marked as a project around the file.
    pub fn have(&self, real: &Path) -> bool {
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
