//! `new test`: creates a conversation test that passes, with the current opening messages of its script.

use bcc_lang::message::msg;
use bcc_runtime::run::head::SessionStatus;
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use crate::scaffold::names::name as name_of;
use crate::scaffold::new::{CreatedFile, write_document};
use crate::scaffold::opening_messages::{Opening, opening};
use crate::scaffold::texts::texts;
use crate::test_runner::find::USUAL_FOLDER;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::current_directory;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute};
use bcc_lang::message::language::Language;

/// The start of the line that is a placeholder for the person's answer.
const ANSWER_LINE: &str = "  # - user:";

/// Writes `tests/<name>.yaml` for the script at `script`, or for the project's `scripts/<name>.yaml`.
/// Errors: `Usage` if the name is invalid or taken, and if the script does not exist, is outside the project or cannot
/// be started; `Invalid` if the script has errors; `Failed` if the test cannot be written.
pub async fn test(
    project: &Project,
    given: &str,
    script: Option<&Path>,
    language: Language,
    environment: &Environment,
) -> Result<CreatedFile, EngineError> {
    let name = name_of(given)?;
    let default_script = project.directory.join("scripts").join(format!("{name}.yaml"));
    let script = match script {
        Some(script) => script.to_path_buf(),
        None if default_script.is_file() => default_script,
        None => {
            return Err(EngineError::usage(msg!("the script that `{name}` tests is not specified"))
                .with_help("add `--script scripts/NAME.yaml`"));
        }
    };
    let names = PathNames::relative_to(current_directory()?);
    let shown = names.display_name(&script);
    if !script.is_file() {
        let message = match script.is_dir() {
            true => msg!("{shown} is a folder, but a test covers a single script"),
            false => msg!("there is no file {shown}"),
        };
        return Err(EngineError::usage(message).with_help("`--script` takes a script file"));
    }
    let real = absolute(&script);
    let base = absolute(&project.directory);
    if !real.starts_with(&base) {
        let message = msg!("{shown} is outside the project {path}", path = base.display());
        return Err(EngineError::usage(message).with_help("a test can only use a script of its own project"));
    }
    let opening = opening(project.clone(), &shown_path(&script, &names), environment).await?;
    let text = text(language, name, &from_tests(&real, &base), &opening)?;
    let path = write_document(project, USUAL_FOLDER, name, "test", text)?;
    Ok(CreatedFile { path, name: name.to_owned() })
}

/// The path in the form that messages use.
fn shown_path(path: &Path, names: &PathNames) -> PathBuf {
    PathBuf::from(names.display_name(path))
}

/// The path of a script, relative to the tests of the project.
fn from_tests(script: &Path, base: &Path) -> String {
    let inside = script.strip_prefix(base).unwrap_or(script);
    let parts = inside.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        _ => None,
    });
    let parts: Vec<String> = parts.collect();
    match parts.split_first() {
        Some((first, rest)) if first == USUAL_FOLDER && !rest.is_empty() => rest.join("/"),
        _ => format!("../{}", parts.join("/")),
    }
}

fn text(language: Language, name: &str, script: &str, opening: &Opening) -> Result<String, EngineError> {
    let status = opening.status.name();
    let messages: Vec<_> = opening.messages.iter().map(|text| json!({ "ai": text })).collect();
    let messages: String = match messages.as_slice() {
        [] => String::new(),
        messages => yaml(&messages)?.lines().map(indented).collect(),
    };
    let mut text = texts(language).new_test.replace("@NAME@", name).replace("@STATUS@", status);
    if opening.status != SessionStatus::WaitingInput {
        // The script asks no question.
        text = text.lines().filter(|line| !line.starts_with(ANSWER_LINE)).map(|line| format!("{line}\n")).collect();
    }
    if messages.is_empty() {
        text = text.replace("dialogue:\n@SAID@\n", "");
    }
    // Replaced last, because these texts may contain placeholders.
    Ok(text.replace("@SCRIPT@", yaml(&script)?.trim_end()).replace("@SAID@\n", &messages))
}

fn indented(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }
}

fn yaml(value: &impl serde::Serialize) -> Result<String, EngineError> {
    serde_yaml::to_string(value)
        .map_err(|error| EngineError::failed(msg!("the test cannot be written as YAML: {error}")))
}
