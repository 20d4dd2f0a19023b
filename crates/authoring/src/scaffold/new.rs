//! `new`: adds a script or a skill to a project. ([`crate::templates::new`] creates schemes, [`crate::scaffold::test`] tests.)

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::scaffold::draft::{FileDraft, conflicts, write_all};
use crate::scaffold::languages::of_prompts;
use crate::scaffold::names::name as name_of;
use crate::scaffold::texts::texts;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::skills::library;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::portable::differ_only_in_case;
use bcc_engine::project::{Project, given_directory, is_marked};
use bcc_lang::message::language::Language;

/// Words that some version of YAML parses as something other than a string.
const NON_TEXT_WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedFile {
    /// The absolute path.
    pub path: PathBuf,
    pub name: String,
}

/// The project of a new file: `given` (`--project`, then `BCC_PROJECT`), or the one around the current directory.
/// Errors: `Usage` if there is none.
pub fn project(given: Option<&Path>, environment: &Environment) -> Result<Project, EngineError> {
    let here = current_directory()?;
    let project = Project::of(&here, given, false, environment)?;
    if given_directory(given, environment)?.is_none() && !is_marked(&project.directory) {
        return Err(EngineError::usage("this directory does not belong to a project")
            .with_help("`bcc-script init` creates one here; `--project DIR` selects one elsewhere"));
    }
    Ok(project)
}

/// The language of a new file: the requested one, or that of the project's prompts if it has its own scheme, or `fallback`.
pub fn language(project: &Project, asked: Option<Language>, fallback: Language) -> Language {
    let has_scheme = project.config.project.scheme.is_some();
    asked.or_else(|| of_prompts(project).filter(|_| has_scheme)).unwrap_or(fallback)
}

/// The built-in scheme with prompts in `language`.
pub fn built_in_scheme(language: Language) -> &'static str {
    match language {
        Language::English | Language::Pseudo => "english",
        Language::Chinese => "chinese",
    }
}

/// Writes `scripts/<name>.yaml`.
/// Errors: `Usage` if the name is invalid or taken, `Failed` if the file cannot be written.
pub fn script(project: &Project, given: &str, language: Language) -> Result<CreatedFile, EngineError> {
    let name = name_of(given)?;
    let text = filled(texts(language).new_script, name);
    let text = match of_prompts(project).filter(|prompts| *prompts != language) {
        // The project's prompts are in the other language, so the script uses a built-in scheme.
        Some(_) => {
            let (id, scheme) = (scalar(name), built_in_scheme(language));
            let id = format!("  session_id: {id}\n");
            text.replace(&id, &format!("{id}  template_scheme: {scheme}\n"))
        }
        None => text,
    };
    let path = write_document(project, "scripts", name, "script", text)?;
    Ok(CreatedFile { path, name: name.to_owned() })
}

/// Writes `skills/<name>.yaml`.
/// Errors: as [`script`]; also if another file contains a skill with this name.
pub fn skill(project: &Project, given: &str, language: Language) -> Result<CreatedFile, EngineError> {
    let name = name_of(given)?;
    let names = PathNames::relative_to(current_directory()?);
    if let Some(known) = library(&project.directory, &names).skill(name) {
        let message = msg!("the skill `{name}` already exists: {}", known.file.name());
        return Err(EngineError::usage(message).with_help("choose another name; scripts call a skill by its name"));
    }
    let path = write_document(project, "skills", name, "skill", filled(texts(language).new_skill, name))?;
    Ok(CreatedFile { path, name: name.to_owned() })
}

/// Writes a document, with a schema comment for editors if the project has the schema. Returns its path.
/// Errors: `Usage` if it already exists, `Failed` if it cannot be written.
pub fn write_document(
    project: &Project,
    folder: &str,
    name: &str,
    schema: &str,
    text: String,
) -> Result<PathBuf, EngineError> {
    let base = &project.directory;
    let schema = format!("schemas/{schema}.schema.json");
    let text = match base.join(&schema).is_file() {
        true => format!("# yaml-language-server: $schema=../{schema}\n{text}"),
        false => text,
    };
    let draft = FileDraft::new(format!("{folder}/{name}.yaml"), text);
    let drafts = [draft, FileDraft::new(format!("{folder}/{name}.yml"), "")];
    let found =
        conflicts(base, &drafts).map_err(|error| EngineError::failed(msg!("{folder}/ cannot be accessed: {error}")))?;
    if let Some(found) = found.first() {
        let shown = PathNames::relative_to(current_directory()?).display_name(&base.join(found));
        if drafts.iter().all(|draft| draft.path != *found) {
            return Err(not_a_folder(&base.join(found), &shown));
        }
        let error = EngineError::usage(msg!("{shown} already exists, and nothing was changed"));
        return Err(error.with_help("choose another name"));
    }
    let entries = std::fs::read_dir(base.join(folder)).into_iter().flatten();
    let siblings = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let differs_in_case = |existing: &String| {
        ["yaml", "yml"].iter().any(|ending| differ_only_in_case(existing, &format!("{name}.{ending}")))
    };
    if let Some(existing) = siblings.into_iter().find(differs_in_case) {
        let message = msg!("there is a file {folder}/{existing}, whose name differs from `{name}` only in case");
        return Err(
            EngineError::usage(message).with_help("some systems cannot tell the two files apart: choose another name")
        );
    }
    let [draft, _] = drafts;
    write_all(base, std::slice::from_ref(&draft))?;
    Ok(base.join(draft.path))
}

fn not_a_folder(path: &Path, shown: &str) -> EngineError {
    if !path.is_symlink() {
        return EngineError::usage(msg!("{shown} is a file, but a folder is required"))
            .with_help("nothing was changed; move the file elsewhere");
    }
    let error = match path.exists() {
        true if path.is_dir() => EngineError::usage(msg!(
            "{shown} is a link to a location outside the project, and nothing is written there"
        )),
        true => EngineError::usage(msg!("{shown} is a link to a file, but a folder is required")),
        false => EngineError::usage(msg!("{shown} is a broken link, but a folder is required")),
    };
    error
        .with_help("nothing was changed; replace the link with a folder, or specify the other project with `--project`")
}

fn filled(text: &str, name: &str) -> String {
    text.replace("@ID@", &scalar(name)).replace("@NAME@", &scalar(name))
}

fn scalar(name: &str) -> String {
    let plain = name.starts_with(char::is_alphabetic) && !NON_TEXT_WORDS.contains(&name.to_lowercase().as_str());
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}
