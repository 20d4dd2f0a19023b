//! The fields of state files. Other fields belong to other programs: they are kept, and only one that looks misspelled is reported.

use std::sync::Arc;

use crate::message::msg;

use crate::script::fields::{Fields, shortened};
use crate::script::findings::Findings;
use crate::script::legacy_fields::current_spelling;
use crate::script::lines::renamed;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::{is_typing_error, near_miss};
use crate::source::span::Spanned;
use crate::source::text::SourceFile;

/// The fields of the file.
pub const FILE_FIELDS: [&str; 7] = ["workflow_id", "type", "status", "current_step", "variables", "tools", "steps"];

/// The fields of steps and sub tasks.
pub const STEP_FIELDS: [&str; 39] = [
    "id",
    "name",
    "description",
    "type",
    "status",
    "started_at",
    "completed_at",
    "result",
    "next",
    "depends_on",
    "condition",
    "on_failure",
    "command",
    "tool",
    "arguments",
    "skill",
    "simulate",
    "shell",
    "cwd",
    "env",
    "input",
    "ok_codes",
    "requires",
    "output",
    "timeout",
    "retry",
    "on_interrupted",
    "compensate",
    "cases",
    "else",
    "prompt",
    "approvers",
    "form",
    "decisions",
    "rewind_to",
    "on_timeout",
    "sub_tasks",
    "fail",
    "max_parallel",
];

/// Warns about keys that are probably misspelled fields: they would have no effect.
pub(crate) fn report_near_misses(fields: &Fields<'_>, known: &[&str]) {
    for entry in fields.entries() {
        let key = entry.key.value.as_str();
        if known.contains(&key) || current_spelling(key).is_some() || !fields.findings().may_suggest() {
            continue;
        }
        let absent = known.iter().copied().filter(|name| !fields.has(name));
        let Some(near) = near_miss(key, absent).filter(|near| is_typing_error(key, near)) else { continue };
        let message = msg!("`{}` is not a field of {}, and has no effect", shortened(key), fields.subject());
        let diagnostic = Diagnostic::warning("unknown-key", message, fields.file(), entry.key.span);
        let edits = vec![renamed(fields.file(), &entry.key, near)];
        let diagnostic = diagnostic.with_help(msg!("did you mean `{near}`?"));
        fields.findings().report(diagnostic.with_fix(msg!("rename to `{near}`"), edits));
    }
}

/// Reports an id that is none of `known`.
pub(crate) fn report_unknown(
    file: &Arc<SourceFile>,
    findings: &Findings,
    (field, written): (&'static str, &Spanned<String>),
    known: &[&str],
) {
    let message = msg!("`{field}` names `{}`, but there is no such step", shortened(&written.value));
    let near = findings.may_suggest().then(|| near_miss(&written.value, known.iter().copied())).flatten();
    let diagnostic = Diagnostic::error("unknown-target", message, file, written.span);
    findings.report(diagnostic.with_suggestion_or(near, || msg!("write the `id` of a step")));
}
