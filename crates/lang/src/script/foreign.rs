//! Recognizes files of an older engine that have no counterpart here, and says what does their work; and JSON of other programs.

use std::sync::Arc;

use crate::message::message::Message;
use crate::message::msg;
use crate::source::diagnostic::Diagnostic;
use crate::source::json_file::{NOTEBOOK_HELP, is_meant_as_json};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};

const FOREIGN_DOCUMENT: &str = "foreign-document";

/// The root keys of such files, whether their value is a list, and the help.
const FOREIGN: [(&str, bool, &str); 5] = [
    (
        "consciousness",
        false,
        "what watches for a crisis is a trigger of the session; what watches how a conversation goes is a monitor",
    ),
    ("global", true, "declare these variables in each script that uses them, with `scope: global`"),
    ("variables", true, "declare these variables in each script that uses them, with `scope: global`"),
    ("skills", true, "write each skill in a file of its own below skills/, which starts with `skill:`"),
    ("roles", true, "the names of the AI and of the person are `who` and `user` of the session"),
];

/// The diagnostic of JSON that is neither a script nor a state, such as a Jupyter notebook.
pub(crate) fn foreign_json(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let has = |key: &str| root.get(key).is_some();
    if has("nbformat") && has("cells") {
        let message = "this is a Jupyter notebook, not a script";
        return Some(Diagnostic::error(FOREIGN_DOCUMENT, message, file, Span::default()).with_help(NOTEBOOK_HELP));
    }
    if !is_meant_as_json(file.name(), file.text()) {
        return None;
    }
    let message = "this JSON is neither a script nor a state";
    let help = "a script has `session` at its root; a state has `observation`, or `location` with `context` or `state`, or `workflow_id`";
    Some(Diagnostic::error(FOREIGN_DOCUMENT, message, file, Span::default()).with_help(help))
}

/// The diagnostic of a file that an older engine used and that nothing here reads.
pub(crate) fn foreign_document(file: &Arc<SourceFile>, root: &YamlNode) -> Option<Diagnostic> {
    let fits = |value: &YamlNode, list: bool| match value.kind {
        NodeKind::Sequence(_) => list,
        NodeKind::Mapping(_) => !list,
        NodeKind::Scalar(_) => false,
    };
    let (entry, help) = root.as_mapping()?.iter().find_map(|entry| {
        let (_, _, help) =
            FOREIGN.iter().find(|(key, list, _)| *key == entry.key.value && fits(&entry.value, *list))?;
        Some((entry, help))
    })?;
    let message = msg!("a file with `{}` at its root is of an older engine: nothing here reads it", entry.key.value);
    Some(Diagnostic::error(FOREIGN_DOCUMENT, message, file, entry.key.span).with_help(Message::word(help)))
}
