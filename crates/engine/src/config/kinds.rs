//! `[kinds.<name>]` of `bcc-script.toml`: action types that a project defines (docs/custom-kinds.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::config::config::Config;
use crate::config::places::ConfigError;
use crate::config::secrets::is_variable;
use crate::config::values::duration;
use bcc_lang::script::fields::shortened;
use bcc_runtime::actions::KINDS;
use bcc_runtime::notebook::action::{Read, read};
use bcc_runtime::program::custom::{CustomBody, CustomKind, MAX_KINDS};

/// The help for an entry of `env` that is not a name.
pub(crate) const ENV_HELP: &str = "write only the names of environment variables: `env = [\"AWS_PROFILE\"]`";

/// In characters.
const MAX_NAME_LENGTH: usize = 64;

/// `[kinds.<name>]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindTable {
    pub description: Option<String>,
    pub skill: Option<String>,
    /// The program with its arguments.
    pub command: Option<Vec<String>>,
    pub before: Option<HookTable>,
    pub after: Option<HookTable>,
    /// The time limit of each of its commands.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// The names of environment variables that its commands receive in addition to the usual ones. They are not part of the
    /// action type that a session stores: what a program receives is decided by the configuration, never by a store.
    #[serde(default)]
    pub env: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookTable {
    pub skill: Option<String>,
    /// The program with its arguments.
    pub command: Option<Vec<String>>,
}

impl KindTable {
    /// The action type; none if it has no valid body, which [`errors`] reports.
    pub fn kind(&self, name: &str) -> Option<CustomKind> {
        Some(CustomKind {
            name: name.to_owned(),
            description: self.description.clone(),
            body: custom_body(self.skill.as_ref(), self.command.as_ref())?,
            before: self.before.as_ref().and_then(|hook| custom_body(hook.skill.as_ref(), hook.command.as_ref())),
            after: self.after.as_ref().and_then(|hook| custom_body(hook.skill.as_ref(), hook.command.as_ref())),
            timeout: self.timeout,
        })
    }
}

fn custom_body(skill: Option<&String>, command: Option<&Vec<String>>) -> Option<CustomBody> {
    match (skill, command) {
        (Some(skill), None) => Some(CustomBody::Skill(skill.clone())),
        (None, Some(command)) => Some(CustomBody::Command(command.clone())),
        _ => None,
    }
}

/// The action types of a project, by name, without invalid ones, which [`errors`] reports.
pub fn kinds(config: &Config) -> BTreeMap<String, CustomKind> {
    let valid = config.kinds.iter().filter(|(name, table)| table_errors(name, table).is_empty()).take(MAX_KINDS);
    valid.filter_map(|(name, table)| Some((name.clone(), table.kind(name)?))).collect()
}

/// The errors of all action types, in the order of their names.
pub fn errors(kinds: &BTreeMap<String, KindTable>) -> Vec<ConfigError> {
    let mut found: Vec<ConfigError> = kinds.iter().flat_map(|(name, table)| table_errors(name, table)).collect();
    if let Some(excess) = kinds.keys().nth(MAX_KINDS) {
        let message = msg!("there are more than {MAX_KINDS} action types");
        found.push(error(excess, &[], message, "one skill with an input can replace many similar action types"));
    }
    found
}

fn error(name: &str, at: &[&str], message: impl Into<Message>, help: impl Into<Message>) -> ConfigError {
    ConfigError::new(&[&["kinds", name], at].concat(), msg!("action type `{name}`: {}", message.into()), help)
}

fn table_errors(name: &str, table: &KindTable) -> Vec<ConfigError> {
    let mut found: Vec<ConfigError> = name_error(name).into_iter().collect();
    check_body(name, &[], (table.skill.as_ref(), table.command.as_ref()), &mut found);
    for (key, hook) in [("before", &table.before), ("after", &table.after)] {
        if let Some(hook) = hook {
            check_body(name, &[key], (hook.skill.as_ref(), hook.command.as_ref()), &mut found);
        }
    }
    for (number, variable) in table.env.iter().enumerate().filter(|(_, variable)| !is_variable(variable)) {
        let message = msg!("`{}` in `env` is not a valid environment variable name", shortened(variable));
        found.push(error(name, &["env", &number.to_string()], message, ENV_HELP));
    }
    found
}

fn name_error(name: &str) -> Option<ConfigError> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME_LENGTH || !name.chars().all(allowed) {
        let help = msg!("a name consists of 1 to {MAX_NAME_LENGTH} letters (of any script), digits, `_`, `.` and `-`");
        return Some(error(name, &[], "this is not a valid name for an action type", help));
    }
    // A script must mean the same in every project.
    let is_built_in = KINDS.iter().any(|kind| kind.name() == name);
    let message = match () {
        () if is_built_in => "the name is already used by a built-in action type",
        () if !matches!(read(&json!({ "action": name })), Ok(Read::Unknown { .. })) => {
            "the name is a legacy name of a notebook action"
        }
        () => return None,
    };
    Some(error(name, &[], message, "give it another name"))
}

/// Checks that a body is either a valid skill or a valid command.
fn check_body(name: &str, at: &[&str], body: (Option<&String>, Option<&Vec<String>>), found: &mut Vec<ConfigError>) {
    let mut report = |key: Option<&str>, message: &'static str, help: &'static str| {
        let at: Vec<&str> = at.iter().copied().chain(key).collect();
        found.push(error(name, &at, message, help));
    };
    match body {
        (None, None) => report(
            None,
            "neither a skill nor a command is specified",
            "write `skill = \"…\"`, or `command = [\"program\", \"argument\"]`",
        ),
        (Some(_), Some(_)) => report(
            Some("command"),
            "both a skill and a command are specified",
            "keep one of them; the other can run before or after it",
        ),
        (Some(skill), None) if skill.trim().is_empty() => {
            report(Some("skill"), "`skill` is empty", "write the id of a skill");
        }
        (None, Some(command)) => {
            let empty = command.first().is_none_or(|program| program.trim().is_empty());
            if empty {
                let help =
                    "write the program and its arguments, each as a separate string: `[\"program\", \"argument\"]`";
                report(Some("command"), "`command` names no program", help);
            } else if command.iter().any(|text| text.contains('\0')) {
                report(Some("command"), "`command` contains a character that no argument can have", "remove it");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config;

    #[test]
    fn a_table_of_kinds_is_read() {
        let text = r#"
            [kinds.tidy]
            skill = "tidying"
            description = "tidies up"
            [kinds."记录"]
            command = ["./note.sh", "--append"]
            before = { skill = "ready" }
            after = { command = ["true"] }
            timeout = "5s"
            env = ["AWS_PROFILE"]
        "#;
        let config = config::read(text).unwrap();
        assert_eq!(errors(&config.kinds), []);
        let kinds = kinds(&config);
        assert_eq!(kinds["tidy"].body, CustomBody::Skill("tidying".into()));
        let note = &kinds["记录"];
        assert_eq!(
            (note.timeout, note.before.clone()),
            (Some(Duration::from_secs(5)), Some(CustomBody::Skill("ready".into())))
        );
        assert_eq!(note.after, Some(CustomBody::Command(vec!["true".into()])));
    }

    #[test]
    fn an_invalid_kind_is_reported_with_its_position_and_left_out() {
        let table = [
            ("[kinds.a]\n", "neither a skill nor a command", vec!["kinds", "a"]),
            (
                "[kinds.a]\nskill = \"s\"\ncommand = [\"c\"]\n",
                "both a skill and a command",
                vec!["kinds", "a", "command"],
            ),
            ("[kinds.a]\ncommand = []\n", "names no program", vec!["kinds", "a", "command"]),
            ("[kinds.a]\ncommand = [\" \", \"x\"]\n", "names no program", vec!["kinds", "a", "command"]),
            ("[kinds.a]\ncommand = [\"x\", \"\\u0000\"]\n", "no argument can have", vec!["kinds", "a", "command"]),
            (
                "[kinds.a]\ncommand = [\"c\"]\nenv = [\"A\", \"B=c\"]\n",
                "in `env` is not a valid environment variable name",
                vec!["kinds", "a", "env", "1"],
            ),
            ("[kinds.a]\nskill = \"\"\n", "`skill` is empty", vec!["kinds", "a", "skill"]),
            ("[kinds.a]\nskill = \"s\"\nbefore = {}\n", "neither", vec!["kinds", "a", "before"]),
            (
                "[kinds.a]\nskill = \"s\"\nafter = { command = [] }\n",
                "no program",
                vec!["kinds", "a", "after", "command"],
            ),
            ("[kinds.\"a b\"]\nskill = \"s\"\n", "not a valid name", vec!["kinds", "a b"]),
            ("[kinds.set]\nskill = \"s\"\n", "a built-in action type", vec!["kinds", "set"]),
            ("[kinds.exec]\nskill = \"s\"\n", "a built-in action type", vec!["kinds", "exec"]),
            ("[kinds.new_step]\nskill = \"s\"\n", "a legacy name", vec!["kinds", "new_step"]),
        ];
        for (text, message, at) in table {
            let config = config::read(text).unwrap();
            let found = errors(&config.kinds);
            assert!(
                found.len() == 1 && found[0].message.to_string().contains(message) && found[0].path == at,
                "{text}: {found:?}"
            );
            assert!(kinds(&config).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_number_of_kinds_is_limited() {
        let text: String = (0..=MAX_KINDS).map(|n| format!("[kinds.k{n}]\nskill = \"s\"\n")).collect();
        let config = config::read(&text).unwrap();
        assert!(errors(&config.kinds)[0].message.to_string().contains("more than 200"));
        assert_eq!(kinds(&config).len(), MAX_KINDS);
    }
}
