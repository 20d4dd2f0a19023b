//! The permissions of the scripts of a project outside of the conversation (`allow` of bcc-script.toml), and the project directory.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

/// The permissions. Nothing is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The directory of the project, in which programs and kernels run.
    pub directory: PathBuf,
    /// The entries of `allow` that apply to the session: `exec`, `command`.
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

impl Permissions {
    /// Whether `what` is allowed.
    pub fn check(&self, what: &str) -> Result<(), PermissionError> {
        if self.allowed.contains(what) {
            return Ok(());
        }
        if self.withheld.contains(what) {
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
