//! What the scripts of a project may do outside of the conversation (`allow` of bcc-script.toml), and where.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is allowed. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The directory of the project: programs and kernels run there.
    pub directory: PathBuf,
    /// What `allow` names and the person trusts: `exec`, `command`.
    pub allowed: BTreeSet<String>,
    /// What `allow` names though the person does not trust the file.
    pub untrusted: BTreeSet<String>,
    /// The environment variables that hold keys: no program gets them.
    pub hidden: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PermissionError {
    pub message: Message,
    pub help: Message,
}

impl Permissions {
    /// Whether `what` is allowed.
    pub fn may(&self, what: &str) -> Result<(), PermissionError> {
        if self.allowed.contains(what) {
            return Ok(());
        }
        if self.untrusted.contains(what) {
            return Err(PermissionError {
                message: msg!(
                    "`{what}` is allowed in bcc-script.toml, but you have not marked this project as trusted"
                ),
                help: Message::word("review the project, then run `bcc-script trust`, or add `--trust` for this run"),
            });
        }
        Err(PermissionError {
            message: msg!("the project does not allow `{what}`"),
            help: msg!(
                "if its scripts should be allowed to do this, add `allow = [\"{what}\"]` to `[project]` in bcc-script.toml"
            ),
        })
    }
}
