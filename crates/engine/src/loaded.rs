//! Reads a script from a project and checks it, before a session is started.

use std::path::Path;
use std::sync::Arc;

use crate::config::kinds::kinds;
use crate::discovery::names::PathNames;
use crate::discovery::skills::{library, with_paths};
use crate::discovery::walk::current_directory;
use crate::engine::RunRequest;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::{TemplateFolders, reply_schemas, script};
use crate::host_services::{check_permissions, host_services};
use crate::pin::Pinned;
use crate::project::{Project, absolute};
use bcc_check::library::SkillLibrary;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::read::{is_workflow, scheme, skill_paths};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::layers::{CHINESE_SCHEME, TemplateFile, collect, own_scheme, scheme_of_language};
use bcc_lang::template::missing::Marks;
use bcc_runtime::program::program::Program;

/// A script with its templates, checked.
pub struct LoadedProgram {
    pub(crate) pinned: Pinned,
    pub program: Program,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) scheme: Option<String>,
    /// Which prompts are used, if nothing names a scheme.
    pub(crate) unnamed_scheme: Option<Message>,
    /// Whether it is a workflow state file, which a session carries.
    pub is_state_file: bool,
}

impl LoadedProgram {
    /// Reads and checks the script of `request`.
    ///
    /// # Errors
    /// `Invalid` with all findings when the script has errors; `Usage` when it or its templates cannot be read.
    pub fn of(project: &Project, request: &RunRequest) -> Result<Self, EngineError> {
        Self::with_marks(project, request, None)
    }

    /// Rejects a script that needs a permission that its project does not grant, before a store is created.
    ///
    /// # Errors
    /// `Usage`, which names the action that needs the permission and how to grant it.
    pub fn check_permissions(&self, project: &Project, environment: &Environment) -> Result<(), EngineError> {
        project.refuse_changes()?;
        check_permissions(&self.program, &host_services(project, environment, &self.pinned))
    }

    /// [`LoadedProgram::of`] for inspection: undefined and empty names in prompts and texts are recorded in `marks`, not errors.
    pub fn with_marks(
        project: &Project,
        request: &RunRequest,
        marks: Option<&Arc<Marks>>,
    ) -> Result<Self, EngineError> {
        let file = script(&request.file)?;
        // The scheme determines the templates, and the check needs the templates.
        let parsed = parse(&file);
        let written = parsed.root.as_deref().and_then(scheme).filter(|_| request.scheme.is_none());
        let requested = request.scheme.clone().or_else(|| written.as_ref().map(|written| written.value.clone()));
        let folders = TemplateFolders::of(&project.directory);
        let named = requested.or_else(|| project.config.project.scheme.clone());
        let is_named = named.is_some();
        let chosen = named.or_else(|| scheme_of_language(&folders, parsed.root.as_deref()).map(str::to_owned));
        let scheme = own_scheme(chosen.as_deref()).map(str::to_owned);
        let (templates, wrong_scheme) = match (collect(&folders, scheme.as_deref()), &written) {
            // The rest of the script can be checked without its scheme.
            (Err(error), Some(written)) if error.file.is_none() => {
                let diagnostic = Diagnostic::error("unknown-scheme", error.message, &file, written.span);
                (collect(&folders, None)?, Some(diagnostic.with_help(error.help.unwrap_or_default())))
            }
            (templates, _) => (templates?, None),
        };
        let is_state_file = parsed.root.as_deref().is_some_and(is_workflow);
        let library = skills(project, &request.file, parsed.root.as_deref())?;
        let mut pinned =
            Pinned::new(file, templates, reply_schemas(&project.directory)?).with_kinds(kinds(&project.config));
        let compiled = pinned.compiled()?;
        let compiled = match marks {
            Some(marks) => compiled.with_marks(Arc::clone(marks)),
            None => compiled,
        };
        let (mut program, mut diagnostics) = pinned.check_against(compiled, parsed, &library)?;
        if let (Some(program), Some(marks)) = (&mut program, marks) {
            program.texts.record_in(Arc::clone(marks));
        }
        if let Some(wrong_scheme) = wrong_scheme {
            diagnostics.push(wrong_scheme);
            sort(&mut diagnostics);
            return Err(EngineError::Invalid(diagnostics));
        }
        match (program, diagnostics) {
            (Some(program), diagnostics) => {
                pinned.add_skills(&program);
                let unnamed_scheme =
                    (!is_named && !is_state_file).then(|| unnamed_scheme(&pinned.templates, scheme.as_deref()));
                Ok(Self { pinned, program, diagnostics, scheme, unnamed_scheme, is_state_file })
            }
            (None, diagnostics) => Err(EngineError::Invalid(diagnostics)),
        }
    }

    pub fn into_parts(self) -> (Pinned, Program) {
        (self.pinned, self.program)
    }

    /// The findings of the check, without errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// The message about the prompts of a session for which no scheme is named.
fn unnamed_scheme(templates: &[TemplateFile], scheme: Option<&str>) -> Message {
    if templates.iter().any(|file| file.place == "default") {
        return msg!("no template scheme is named; the prompts are those of _system/config/default/");
    }
    let scheme = scheme.unwrap_or(CHINESE_SCHEME);
    msg!(
        "no template scheme is named; by the language of the script, the prompts are those of the built-in scheme `{scheme}`"
    )
}

/// The skills of a project, preceded by those that the script refers to by path.
fn skills(project: &Project, script: &Path, root: Option<&YamlNode>) -> Result<SkillLibrary, EngineError> {
    let names = PathNames::relative_to(current_directory()?);
    let library = library(&project.directory, &names);
    let paths = root.map(skill_paths).unwrap_or_default();
    Ok(with_paths(&library, paths.into_iter(), (&absolute(script), &project.directory), &names))
}
