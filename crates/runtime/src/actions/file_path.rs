//! Paths of the project in the config of actions, and the permission to use them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::template::text::Text;

/// Reads a path that is relative to the project. One that certainly leads out of it is reported.
pub(crate) fn file_path(
    words: &TextField,
    name: &str,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<Text> {
    let text = checker.code(words)?;
    let leads_out = words.text.starts_with('/') || words.text.split('/').any(|part| part == "..");
    if text.is_plain() && leads_out {
        let message = msg!("`{name}` leads out of the project");
        let help = "write a path in the project, relative to the project, without `..`";
        fields.error("path-outside", message, words.node.span, help);
        return None;
    }
    Some(text)
}

/// Why the action may not use files. Also reports a warning on how to allow it.
pub(crate) fn permission_error(turn: &Turn<'_>, permission: &str) -> Option<Message> {
    let host = &turn.services.host;
    if !host.files.needs_permission() {
        return None;
    }
    let error = host.permissions.check(permission).err()?;
    turn.warn("not-allowed", error.message.clone(), Some(error.help));
    Some(error.message)
}
