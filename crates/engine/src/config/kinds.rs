//! `[kinds.<name>]` of `bcc-script.toml`: kinds of action that a project makes itself (docs/custom-kinds.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::config::config::Config;
use crate::config::places::ConfigError;
use crate::config::values::duration;
use bcc_check::checker::LATER_KINDS;
use bcc_runtime::actions::KINDS;
use bcc_runtime::notebook::action::{Read, read};
use bcc_runtime::program::custom::{CustomBody, CustomKind, MOST_KINDS};

/// The longest name, in characters.
const LONGEST_NAME: usize = 64;

/// `[kinds.<name>]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindTable {
    pub description: Option<String>,
    pub skill: Option<String>,
    /// The program that it runs, with its arguments.
    pub command: Option<Vec<String>>,
    pub before: Option<HookTable>,
    pub after: Option<HookTable>,
    /// How long each of its commands may take.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookTable {
    pub skill: Option<String>,
    /// The program that it runs, with its arguments.
    pub command: Option<Vec<String>>,
}

impl KindTable {
    /// The kind of this name; none when it says not what it does, which [`faults`] tells.
    pub fn kind(&self, name: &str) -> Option<CustomKind> {
        Some(CustomKind {
            name: name.to_owned(),
            description: self.description.clone(),
            does: does(self.skill.as_ref(), self.command.as_ref())?,
            before: self.before.as_ref().and_then(|hook| does(hook.skill.as_ref(), hook.command.as_ref())),
            after: self.after.as_ref().and_then(|hook| does(hook.skill.as_ref(), hook.command.as_ref())),
            timeout: self.timeout,
        })
    }
}

fn does(skill: Option<&String>, command: Option<&Vec<String>>) -> Option<CustomBody> {
    match (skill, command) {
        (Some(skill), None) => Some(CustomBody::Skill(skill.clone())),
        (None, Some(command)) => Some(CustomBody::Command(command.clone())),
        _ => None,
    }
}

/// The kinds of a project, by name. One that cannot be, as [`faults`] tells, is left out.
pub fn kinds(config: &Config) -> BTreeMap<String, CustomKind> {
    let sound = config.kinds.iter().filter(|(name, table)| faults_of(name, table).is_empty()).take(MOST_KINDS);
    sound.filter_map(|(name, table)| Some((name.clone(), table.kind(name)?))).collect()
}

/// What is wrong with the kinds, by the order of their names.
pub fn faults(kinds: &BTreeMap<String, KindTable>) -> Vec<ConfigError> {
    let mut found: Vec<ConfigError> = kinds.iter().flat_map(|(name, table)| faults_of(name, table)).collect();
    if let Some(over) = kinds.keys().nth(MOST_KINDS) {
        let message = msg!("there are more than {MOST_KINDS} action types");
        found.push(fault(over, &[], message, "one skill with an input can replace many similar action types"));
    }
    found
}

fn fault(name: &str, at: &[&str], message: impl Into<Message>, help: impl Into<Message>) -> ConfigError {
    ConfigError::new(&[&["kinds", name], at].concat(), msg!("action type `{name}`: {}", message.into()), help)
}

fn faults_of(name: &str, table: &KindTable) -> Vec<ConfigError> {
    let mut found: Vec<ConfigError> = name_fault(name).into_iter().collect();
    part(name, &[], (table.skill.as_ref(), table.command.as_ref()), &mut found);
    for (key, hook) in [("before", &table.before), ("after", &table.after)] {
        if let Some(hook) = hook {
            part(name, &[key], (hook.skill.as_ref(), hook.command.as_ref()), &mut found);
        }
    }
    found
}

fn name_fault(name: &str) -> Option<ConfigError> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = name.chars().count();
    if length == 0 || length > LONGEST_NAME || !name.chars().all(allowed) {
        let help = msg!("a name consists of 1 to {LONGEST_NAME} letters (of any script), digits, `_`, `.` and `-`");
        return Some(fault(name, &[], "this is not a valid name for an action type", help));
    }
    // A script must mean the same in every project.
    let own = KINDS.iter().any(|kind| kind.name() == name) || LATER_KINDS.contains(&name);
    let message = match () {
        () if own => "the name is already used by a built-in action type",
        () if !matches!(read(&json!({ "action": name })), Ok(Read::Other { .. })) => {
            "the name is a legacy name of a notebook action"
        }
        () => return None,
    };
    Some(fault(name, &[], message, "give it another name"))
}

/// What runs: a skill or a command, and only one of them.
fn part(name: &str, at: &[&str], what: (Option<&String>, Option<&Vec<String>>), found: &mut Vec<ConfigError>) {
    let mut tell = |key: Option<&str>, message: &'static str, help: &'static str| {
        let at: Vec<&str> = at.iter().copied().chain(key).collect();
        found.push(fault(name, &at, message, help));
    };
    match what {
        (None, None) => tell(
            None,
            "neither a skill nor a command is specified",
            "write `skill = \"…\"`, or `command = [\"program\", \"argument\"]`",
        ),
        (Some(_), Some(_)) => tell(
            Some("command"),
            "both a skill and a command are specified",
            "keep one of them; the other can run before or after it",
        ),
        (Some(skill), None) if skill.trim().is_empty() => {
            tell(Some("skill"), "`skill` is empty", "write the id of a skill");
        }
        (None, Some(command)) => {
            let empty = command.first().is_none_or(|program| program.trim().is_empty());
            if empty {
                let help =
                    "write the program and its arguments, each as a separate string: `[\"program\", \"argument\"]`";
                tell(Some("command"), "`command` names no program", help);
            } else if command.iter().any(|text| text.contains('\0')) {
                tell(Some("command"), "`command` contains a character that no argument can have", "remove it");
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
        "#;
        let config = config::read(text).unwrap();
        assert_eq!(faults(&config.kinds), []);
        let kinds = kinds(&config);
        assert_eq!(kinds["tidy"].does, CustomBody::Skill("tidying".into()));
        let note = &kinds["记录"];
        assert_eq!(
            (note.timeout, note.before.clone()),
            (Some(Duration::from_secs(5)), Some(CustomBody::Skill("ready".into())))
        );
        assert_eq!(note.after, Some(CustomBody::Command(vec!["true".into()])));
    }

    #[test]
    fn what_cannot_be_a_kind_is_told_where_it_stands_and_left_out() {
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
            let found = faults(&config.kinds);
            assert!(
                found.len() == 1 && found[0].message.to_string().contains(message) && found[0].at == at,
                "{text}: {found:?}"
            );
            assert!(kinds(&config).is_empty(), "{text}");
        }
    }

    #[test]
    fn there_is_an_end_to_kinds() {
        let text: String = (0..=MOST_KINDS).map(|n| format!("[kinds.k{n}]\nskill = \"s\"\n")).collect();
        let config = config::read(&text).unwrap();
        assert!(faults(&config.kinds)[0].message.to_string().contains("more than 200"));
        assert_eq!(kinds(&config).len(), MOST_KINDS);
    }
}
