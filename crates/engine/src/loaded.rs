//! Reads a script from a project and checks it, before a session is started.

use std::sync::Arc;

use crate::config::kinds::kinds;
use crate::discovery::names::PathNames;
use crate::discovery::skills::{library, with_paths};
use crate::discovery::walk::current_directory;
use crate::engine::RunRequest;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::{TemplateFolders, reply_schemas, script_named};
use crate::host_services::{check_before, check_permissions, host_services};
use crate::pin::{Pinned, sha256};
use crate::project::{Project, absolute};
use crate::recently_used::RecentlyUsed;
use crate::state_document::{GivenState, StateRequest};
use bcc_check::library::SkillLibrary;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::read::{is_workflow, scheme, skill_paths};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::yaml::{ParsedYaml, YamlNode};
use bcc_lang::template::layers::{CHINESE_SCHEME, TemplateFile, collect, own_scheme, scheme_of_language};
use bcc_lang::template::missing::Marks;
use bcc_runtime::program::program::Program;

/// A script with its templates, checked.
pub struct LoadedProgram {
    pub(crate) pinned: Arc<Pinned>,
    pub program: Arc<Program>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) scheme: Option<String>,
    /// Which prompts are used, if nothing names a scheme.
    pub(crate) unnamed_scheme: Option<Message>,
    /// Whether it is a workflow state file, which a session carries.
    pub is_state_file: bool,
    /// The state of the behavior protocol that a session of it begins from.
    pub given: Option<GivenState>,
    /// Whether what it needs is known to be there.
    pub(crate) is_checked: bool,
}

impl LoadedProgram {
    /// Reads and checks the script of `request`.
    ///
    /// # Errors
    /// `Invalid` with all findings when the script has errors; `Usage` when it or its templates cannot be read.
    pub fn of(project: &Project, request: &RunRequest) -> Result<Self, EngineError> {
        Self::with_marks(project, request, None)
    }

    /// Rejects a script that needs what its project does not permit, or what is not there, before a store is created: a permission, a
    /// kernel that is installed or can be reached, a behavior server that answers. Otherwise [`Engine::run_loaded`] does it.
    ///
    /// [`Engine::run_loaded`]: crate::engine::Engine::run_loaded
    ///
    /// # Errors
    /// `Usage`, which names the action and what to do.
    pub async fn check_before(&mut self, project: &Project, environment: &Environment) -> Result<(), EngineError> {
        project.refuse_changes()?;
        check_before(&self.program, &host_services(project, environment, &self.pinned)).await?;
        self.is_checked = true;
        Ok(())
    }

    /// Rejects a script that needs a permission that its project does not grant.
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
        let found = FoundScript::of(project, request)?;
        let checked = found.check(marks)?;
        Ok(found.load(checked))
    }

    /// [`LoadedProgram::of`], checked only if nothing in `checked` is made from the same texts: one program serves all sessions.
    pub(crate) fn shared(
        project: &Project,
        request: &RunRequest,
        checked: &CheckedPrograms,
    ) -> Result<Self, EngineError> {
        let found = FoundScript::of(project, request)?;
        let Some(key) = found.key()? else {
            let checked = found.check(None)?;
            return Ok(found.load(checked));
        };
        let program = match checked.0.get(&key) {
            Some(program) => program,
            None => checked.0.put(key, found.check(None)?),
        };
        Ok(found.load(program))
    }

    pub fn into_parts(self) -> (Arc<Pinned>, Arc<Program>) {
        (self.pinned, self.program)
    }

    /// The findings of the check, without errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// The programs of the scripts that sessions were started from last, by the texts that they are made from.
#[derive(Clone, Default)]
pub(crate) struct CheckedPrograms(Arc<RecentlyUsed<CheckedProgram>>);

/// A program, and what its check found.
#[derive(Clone)]
struct CheckedProgram {
    pinned: Arc<Pinned>,
    program: Arc<Program>,
    diagnostics: Vec<Diagnostic>,
}

/// A script and all that it is checked against, as the files of the project are now.
struct FoundScript {
    parsed: ParsedYaml,
    /// Without skills: the check finds those that the script uses.
    pinned: Pinned,
    library: SkillLibrary,
    scheme: Option<String>,
    is_named: bool,
    wrong_scheme: Option<Diagnostic>,
    is_state_file: bool,
    given: Option<GivenState>,
}

impl FoundScript {
    fn of(project: &Project, request: &RunRequest) -> Result<Self, EngineError> {
        let file = match &request.text {
            Some(text) => Arc::clone(text),
            None => script_named(&request.file, shown_name(request))?,
        };
        // The scheme determines the templates, and the check needs the templates.
        let parsed = parse(&file);
        let given = StateRequest {
            file: &file,
            behavior_server: request.behavior_server.as_deref(),
            names_model: request.model.is_some() || request.replay.is_some(),
            has_cells: !request.cells.is_empty(),
        };
        let given = GivenState::of(project, &given, &parsed)?;
        let (file, parsed) = match &given {
            Some(given) => (Arc::clone(&given.script), parse(&given.script)),
            None => (file, parsed),
        };
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
        let library = skills(project, request, parsed.root.as_deref())?;
        let mut pinned =
            Pinned::new(file, templates, reply_schemas(&project.directory)?).with_kinds(kinds(&project.config));
        pinned.is_generated = given.is_some();
        Ok(Self { parsed, pinned, library, scheme, is_named, wrong_scheme, is_state_file, given })
    }

    /// A text that is the same only for a script that is checked against the same texts. None if it cannot be valid, or its skills
    /// cannot be told by their files.
    fn key(&self) -> Result<Option<String>, EngineError> {
        let Some(library) = self.library.identity().filter(|_| self.wrong_scheme.is_none()) else { return Ok(None) };
        let mut key = self.pinned.key()?;
        for text in library {
            key.push_str(&sha256(text.as_bytes()));
        }
        Ok(Some(key))
    }

    /// # Errors
    /// `Invalid` with all findings when the script has errors; `Usage` when a template or schema cannot be read.
    fn check(&self, marks: Option<&Arc<Marks>>) -> Result<CheckedProgram, EngineError> {
        let compiled = self.pinned.compiled()?;
        let compiled = match marks {
            Some(marks) => compiled.with_marks(Arc::clone(marks)),
            None => compiled,
        };
        let (mut program, mut diagnostics) = self.pinned.check_against(compiled, self.parsed.clone(), &self.library)?;
        if let (Some(program), Some(marks)) = (&mut program, marks) {
            program.texts.record_in(Arc::clone(marks));
        }
        if let Some(wrong_scheme) = &self.wrong_scheme {
            diagnostics.push(wrong_scheme.clone());
            sort(&mut diagnostics);
            return Err(EngineError::Invalid(diagnostics));
        }
        let Some(program) = program else { return Err(EngineError::Invalid(diagnostics)) };
        let mut pinned = self.pinned.clone();
        pinned.add_skills(&program);
        Ok(CheckedProgram { pinned: Arc::new(pinned), program: Arc::new(program), diagnostics })
    }

    fn load(self, checked: CheckedProgram) -> LoadedProgram {
        let CheckedProgram { pinned, program, mut diagnostics } = checked;
        let Self { scheme, is_named, is_state_file, given, .. } = self;
        let unnamed_scheme =
            (!is_named && program.asks_models()).then(|| unnamed_scheme(&pinned.templates, scheme.as_deref()));
        diagnostics.extend(given.iter().flat_map(|given| given.findings.iter().cloned()));
        LoadedProgram { pinned, program, diagnostics, scheme, unnamed_scheme, is_state_file, given, is_checked: false }
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

/// The name of the script in messages.
fn shown_name(request: &RunRequest) -> String {
    let inside = request.named_from.as_ref().and_then(|directory| request.file.strip_prefix(directory).ok());
    inside.unwrap_or(&request.file).display().to_string()
}

/// The skills of a project, preceded by those that the script refers to by path.
fn skills(project: &Project, request: &RunRequest, root: Option<&YamlNode>) -> Result<SkillLibrary, EngineError> {
    let names = match &request.named_from {
        Some(directory) => PathNames::relative_to(directory.clone()),
        None => PathNames::relative_to(current_directory()?),
    };
    let library = library(&project.directory, &names);
    let paths = root.map(skill_paths).unwrap_or_default();
    Ok(with_paths(&library, paths.into_iter(), (&absolute(&request.file), &project.directory), &names))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::{CheckedPrograms, LoadedProgram};
    use crate::engine::RunRequest;
    use crate::environment::Environment;
    use crate::pin::builtin_reply_schemas;
    use crate::project::Project;

    const SCRIPT: &str = "session:\n  session_id: talk\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
                          actions:\n            - { action_type: ai_ask, action_id: a, config: { content: 'How are you?' } }\n";
    const SKILL: &str =
        "skill:\n  skill_id: comfort\n  actions:\n    - { action_type: ai_say, config: { content: 'There.' } }\n";

    fn write(folder: &Path, name: &str, text: &str) {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn sessions_share_a_program_until_something_that_it_is_made_from_changes() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir(folder.join(".bcc")).unwrap();
        write(folder, "talk.yaml", SCRIPT);
        let project = Project::of(folder, None, false, &Environment::default()).unwrap();
        let checked = CheckedPrograms::default();
        let load = |scheme: Option<&str>| {
            let scheme = scheme.map(str::to_owned);
            let request = RunRequest { file: folder.join("talk.yaml"), scheme, ..RunRequest::default() };
            LoadedProgram::shared(&project, &request, &checked).unwrap()
        };
        let first = load(None);
        let again = load(None);
        assert!(Arc::ptr_eq(&first.program, &again.program) && Arc::ptr_eq(&first.pinned, &again.pinned));
        assert!(again.unnamed_scheme.is_some() && load(Some("english")).unnamed_scheme.is_none());

        let schema = builtin_reply_schemas().find(|(name, _)| *name == "ai_ask").unwrap().1;
        let mut before = first;
        let edits = [
            ("talk.yaml", SCRIPT.replace("How are you?", "Well?")),
            ("skills/comfort.yaml", SKILL.to_owned()),
            ("skills/comfort.yaml", SKILL.replace("There.", "There, there.")),
            ("_system/config/default/ai_ask_v1.md", "Another prompt.".to_owned()),
            ("schemas/replies/ai_ask.json", schema.replacen('{', "{ \"$comment\": \"ours\",", 1)),
        ];
        for (name, text) in edits {
            write(folder, name, &text);
            let edited = load(None);
            assert!(!Arc::ptr_eq(&before.program, &edited.program), "{name} was edited");
            before = edited;
        }
        // What was undone is as it was; and a file that is not a skill anymore hides nothing.
        let sharing = load(None);
        assert!(Arc::ptr_eq(&before.program, &sharing.program));
        write(folder, "skills/broken.yaml", "skill: [");
        assert!(!Arc::ptr_eq(&before.program, &load(None).program), "it is unknown which skills there are");
    }

    #[test]
    fn errors_are_found_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir(folder.join(".bcc")).unwrap();
        write(folder, "talk.yaml", &SCRIPT.replace("ai_ask", "ai_aks"));
        let project = Project::of(folder, None, false, &Environment::default()).unwrap();
        let checked = CheckedPrograms::default();
        let request = RunRequest { file: folder.join("talk.yaml"), ..RunRequest::default() };
        for _ in 0..2 {
            assert!(LoadedProgram::shared(&project, &request, &checked).is_err());
        }
        write(folder, "talk.yaml", SCRIPT);
        assert!(LoadedProgram::shared(&project, &request, &checked).is_ok());
    }
}
