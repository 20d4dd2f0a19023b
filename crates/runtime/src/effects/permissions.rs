//! The permissions of the scripts of a project outside of the conversation (`allow` of bcc-script.toml), and the project directory.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use crate::program::custom::COMMAND;

/// The permissions. Nothing is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The directory of the project, in which programs and kernels run.
    pub directory: PathBuf,
    /// The entries of `allow` that apply to the session: `exec`, `command`, `command:git`, …
    pub allowed: BTreeSet<String>,
    /// The entries of `allow` that do not apply to the session.
    pub withheld: BTreeSet<String>,
    /// Why they do not apply; by default, because the person does not trust the project.
    pub withheld_because: Option<PermissionError>,
    /// The environment variables of commands.
    pub variables: ProgramVariables,
}

/// The environment variables that commands receive.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProgramVariables {
    /// For every command.
    pub common: BTreeMap<String, String>,
    /// Additional ones for the commands of an action type of the project, by its name.
    pub of_kinds: BTreeMap<String, BTreeMap<String, String>>,
}

impl ProgramVariables {
    /// The variables for a command of the action type `kind`.
    pub(crate) fn of(&self, kind: &str) -> BTreeMap<String, String> {
        let own = self.of_kinds.get(kind).into_iter().flatten();
        self.common.iter().chain(own).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Without values, which may be secret.
impl fmt::Debug for ProgramVariables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.of_kinds.values().flat_map(BTreeMap::keys);
        formatter.debug_set().entries(self.common.keys().chain(own)).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PermissionError {
    pub message: Message,
    pub help: Message,
}

/// The permission to run `program`, as the author wrote it.
pub fn of_program(program: &str) -> String {
    format!("{PROGRAM}{program}")
}

/// The start of the permission to run one program.
pub const PROGRAM: &str = "command:";

/// Whether the entry of `allow` covers `what`. `command` permits every program, and `command:PATTERN` the programs that are
/// written like this. `*` in it stands for any characters except `/`.
fn covers(entry: &str, what: &str) -> bool {
    let Some(program) = what.strip_prefix(PROGRAM) else { return entry == what };
    entry == COMMAND || entry.strip_prefix(PROGRAM).is_some_and(|pattern| fits(pattern, program))
}

/// Whether `text` is written like `pattern`. Tries only the last `*` again, so that the time is bounded by the product of the lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut in_pattern, mut in_text) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(in_text) {
        match pattern.get(in_pattern) {
            Some('*') => {
                last_star = Some((in_pattern, in_text));
                in_pattern += 1;
            }
            Some(expected) if expected == character => {
                in_pattern += 1;
                in_text += 1;
            }
            // The last `*` takes one more character.
            _ => match last_star {
                Some((star, taken)) if text.get(taken).is_some_and(|taken| *taken != '/') => {
                    last_star = Some((star, taken + 1));
                    (in_pattern, in_text) = (star + 1, taken + 1);
                }
                _ => return false,
            },
        }
    }
    pattern.iter().skip(in_pattern).all(|rest| *rest == '*')
}

impl Permissions {
    /// Whether `what` is allowed.
    pub fn check(&self, what: &str) -> Result<(), PermissionError> {
        let is_in = |entries: &BTreeSet<String>| entries.iter().any(|entry| covers(entry, what));
        if is_in(&self.allowed) {
            return Ok(());
        }
        if is_in(&self.withheld) {
            return Err(self.withheld_because.clone().unwrap_or_else(|| PermissionError {
                message: msg!(
                    "`{what}` is allowed in bcc-script.toml, but you have not marked this project as trusted"
                ),
                help: Message::word("review the project, then run `bcc-script trust`, or add `--trust` for this run"),
            }));
        }
        Err(PermissionError {
            message: msg!("the project does not allow `{what}`"),
            help: msg!(
                "if its scripts should be allowed to do this, add `allow = [\"{what}\"]` to `[project]` in bcc-script.toml"
            ),
        })
    }

    /// Withdraws everything that `is_withheld` accepts, for this reason.
    pub fn withhold(&mut self, because: PermissionError, is_withheld: impl Fn(&str) -> bool) {
        let (withheld, allowed) = std::mem::take(&mut self.allowed).into_iter().partition(|what| is_withheld(what));
        self.allowed = allowed;
        if !BTreeSet::is_empty(&withheld) {
            self.withheld.extend(withheld);
            self.withheld_because = Some(because);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_permits_the_programs_that_are_written_like_it() {
        let table = [
            ("command", "git", true),
            ("command", "/bin/sh", true),
            ("command:git", "git", true),
            ("command:git", "git2", false),
            ("command:git", "/usr/bin/git", false),
            ("command:./tools/*", "./tools/build", true),
            ("command:./tools/*", "tools/build", false),
            ("command:./tools/*", "./tools/../build", false),
            ("command:./tools/*", "./tools/deep/build", false),
            ("command:*/build", "./build", true),
            ("command:a*b*c", "axbxbxc", true),
            ("command:a*b*c", "axbx/bxc", false),
            ("command:*", "git", true),
            ("command:*", "/bin/sh", false),
            ("command:", "git", false),
            ("command:*", "*", true),
            ("command:git", "*", false),
            ("command:部署*", "部署工具", true),
            ("exec", "git", false),
        ];
        for (entry, program, is_permitted) in table {
            assert_eq!(covers(entry, &of_program(program)), is_permitted, "{entry} {program}");
        }
        assert!(!covers("command:git", COMMAND), "a kind of the project needs all of it");
    }
}
