//! What the actions of a test find outside the session: `commands` and `files`. Nothing runs, and no file is read or written.
//!
//! ```yaml
//! commands:
//!   deploy:                                  # the id of an action of the type `command`
//!     - { exit_code: 75, stderr: busy }      # the result of its first attempt
//!     - { stdout: done }
//!     - timeout
//! files:
//!   data/plan.txt: the content of the file
//! ```

use crate::message::msg;
use std::sync::Arc;

use crate::script::fields::{Fields, is_null};
use crate::source::span::Spanned;
use crate::source::yaml::{NodeKind, YamlNode};

/// The results of one action, one for each attempt.
#[derive(Clone, Debug)]
pub struct CommandResults {
    pub action: Spanned<String>,
    pub results: Vec<WrittenResult>,
}

/// The result of a program that does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenResult {
    /// Without one, the program took too long.
    pub exit_code: Option<u8>,
    pub stdout: String,
    pub stderr: String,
}

/// Reads the mapping `{ exit_code, stdout, stderr }`; invalid fields are reported.
pub fn written_result(node: &YamlNode, what: &'static str, fields: &Fields<'_>) -> Option<WrittenResult> {
    let inner = fields.inner(node, what)?;
    let exit_code = inner.integer("exit_code", 0..=255).and_then(|code| u8::try_from(code).ok()).unwrap_or(0);
    let text = |name| inner.text(name).map(|words| words.text).unwrap_or_default();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    inner.finish();
    Some(WrittenResult { exit_code: Some(exit_code), stdout, stderr })
}

/// Reads `commands`.
pub(crate) fn commands(fields: &Fields<'_>) -> Vec<CommandResults> {
    let lists = entries(
        fields,
        "commands",
        "results by action",
        "write for example `deploy: [{ exit_code: 0, stdout: done }]`",
    );
    let mut commands = Vec::new();
    for (action, node) in lists {
        let NodeKind::Sequence(items) = &node.kind else {
            let message = msg!("the results of `{}` must be a list, but this is {}", action.value, node.describe());
            fields.error(
                "wrong-type",
                message,
                node.span,
                "write the results in order, each on its own line with `- `",
            );
            continue;
        };
        let timed_out = |item: &YamlNode| item.as_scalar().is_some_and(|scalar| scalar.text == "timeout");
        let result = |item: &Arc<YamlNode>| match timed_out(item) {
            true => Some(WrittenResult::default()),
            false => written_result(item, "the result of a command", fields),
        };
        commands.push(CommandResults { action, results: items.iter().filter_map(result).collect() });
    }
    commands
}

/// Reads `files`.
pub(crate) fn files(fields: &Fields<'_>) -> Vec<(Spanned<String>, String)> {
    let written = entries(fields, "files", "contents by path", "write for example `data/plan.txt: the content`");
    let mut files = Vec::new();
    for (path, node) in written {
        match node.as_scalar().filter(|_| !is_null(node)) {
            Some(scalar) => files.push((path, scalar.text.clone())),
            None => {
                let message = msg!("the content of `{}` must be text, but this is {}", path.value, node.describe());
                fields.error("wrong-type", message, node.span, "for an empty file, write `\"\"`");
            }
        }
    }
    files
}

pub(crate) fn entries<'a>(
    fields: &Fields<'a>,
    name: &'static str,
    expected: &'static str,
    help: &'static str,
) -> Vec<(Spanned<String>, &'a Arc<YamlNode>)> {
    let Some(node) = fields.take(name) else { return vec![] };
    match &node.kind {
        NodeKind::Mapping(entries) => entries.iter().map(|entry| (entry.key.clone(), &entry.value)).collect(),
        NodeKind::Sequence(_) | NodeKind::Scalar(_) => {
            fields.report_wrong_type(name, expected, node, help);
            vec![]
        }
    }
}
