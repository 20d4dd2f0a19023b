//! The permissions of the scripts of a project outside of the conversation (`allow` of bcc-script.toml), and the project directory.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The permissions. Nothing is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The directory of the project, in which programs and kernels run.
    pub directory: PathBuf,
    /// The entries of `allow` in a project that the person trusts: `exec`, `command`.
    pub allowed: BTreeSet<String>,
    /// The entries of `allow` in a project that the person does not trust.
    pub untrusted: BTreeSet<String>,
    /// The environment variables with secrets, which no program receives.
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
    pub fn check(&self, what: &str) -> Result<(), PermissionError> {
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
