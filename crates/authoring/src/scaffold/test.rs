//! `new test`: a conversation test that passes at once, because it holds what its script says today.

use bcc_lang::message::msg;
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use crate::scaffold::names::name as name_of;
use crate::scaffold::new::{CreatedFile, one};
use crate::scaffold::opening_messages::{Opening, opening};
use crate::scaffold::texts::texts;
use crate::test_runner::find::USUAL_FOLDER;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::here;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute};
use bcc_lang::message::language::Language;

/// How the line begins that stands for the person's answer.
const ANSWER: &str = "  # - user:";

/// Writes `tests/<name>.yaml` about the script at `script`, else about the project's `scripts/<name>.yaml`.
/// Errors: `Usage` for a name that will not do or is taken, and for a script that there is not, that lies outside of the project or
/// cannot be begun; `Invalid` when it is not sound; `Failed` when the test cannot be written.
pub async fn test(
    project: &Project,
    given: &str,
    script: Option<&Path>,
    language: Language,
    environment: &Environment,
) -> Result<CreatedFile, EngineError> {
    let name = name_of(given)?;
    let usual = project.directory.join("scripts").join(format!("{name}.yaml"));
    let script = match script {
        Some(script) => script.to_path_buf(),
        None if usual.is_file() => usual,
        None => {
            return Err(EngineError::usage(msg!("the script that `{name}` tests is not specified"))
                .with_help("add `--script scripts/NAME.yaml`"));
        }
    };
    let names = PathNames::seen_from(here()?);
    let shown = names.shown(&script);
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
    let opening = opening(project.clone(), &names_from_here(&script, &names), environment).await?;
    let text = text(language, name, &from_tests(&real, &base), &opening)?;
    let path = one(project, USUAL_FOLDER, name, "test", text)?;
    Ok(CreatedFile { path, name: name.to_owned() })
}

/// A path under the name that messages about it should use.
fn names_from_here(path: &Path, names: &PathNames) -> PathBuf {
    PathBuf::from(names.shown(path))
}

/// The path of a script as a test of the same project writes it.
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
    let status = if opening.waits { "waiting_input" } else { "completed" };
    let said: Vec<_> = opening.said.iter().map(|text| json!({ "ai": text })).collect();
    let said: String = match said.as_slice() {
        [] => String::new(),
        said => yaml(&said)?.lines().map(indented).collect(),
    };
    let mut text = texts(language).new_test.replace("@NAME@", name).replace("@STATUS@", status);
    if !opening.waits {
        // Nobody is asked anything.
        text = text.lines().filter(|line| !line.starts_with(ANSWER)).map(|line| format!("{line}\n")).collect();
    }
    if said.is_empty() {
        text = text.replace("dialogue:\n@SAID@\n", "");
    }
    // Last, because what stands in them may look like a place.
    Ok(text.replace("@SCRIPT@", yaml(&script)?.trim_end()).replace("@SAID@\n", &said))
}

fn indented(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }
}

fn yaml(value: &impl serde::Serialize) -> Result<String, EngineError> {
    serde_yaml::to_string(value)
        .map_err(|error| EngineError::failed(msg!("the test cannot be written as YAML: {error}")))
}
