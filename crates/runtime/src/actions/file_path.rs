//! Paths of the project in the config of actions, and the permission to use them.

use bcc_lang::message::message::Message;

use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::script::project_path::{PathUse, path_problem};
use bcc_lang::source::diagnostic::Severity;
use bcc_lang::template::text::Text;

/// Reads a path that is relative to the project. One that can certainly not be used so is reported.
pub(crate) fn file_path(
    words: &TextField,
    (name, path_use): (&'static str, PathUse),
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<Text> {
    let text = checker.code(words)?;
    if text.is_plain()
        && let Some(problem) = path_problem(&words.text, name, path_use)
    {
        let is_refused = problem.severity == Severity::Error;
        problem.report(fields, words.node.span);
        return (!is_refused).then_some(text);
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
