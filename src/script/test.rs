//! Conversation tests (LANGUAGE.md section 13), as written.

use std::sync::Arc;

use crate::script::fields::{Fields, Words};
use crate::source::diagnostic::Diagnostic;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{Node, NodeKind};

/// A test.
#[derive(Clone, Debug)]
pub struct WrittenTest {
    /// `test`: what it shows, as a sentence.
    pub name: Option<Words>,
    /// `script`: the path of the script, relative to this file.
    pub script: Option<Spanned<String>>,
    /// The ids under `model` and `monitor`: actions of the script.
    pub replies: Vec<Spanned<String>>,
    /// What the expectations name.
    pub expected: Vec<Expected>,
}

/// A name in an expectation.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A variable.
    Variable(Spanned<String>),
    /// An exit reason.
    ExitReason(Spanned<String>),
    /// The id of an action, topic or phase where the conversation should stand.
    Location(Spanned<String>),
}

/// Reads a test from the fields at the root of its file.
pub fn test(fields: &Fields<'_>) -> Option<WrittenTest> {
    let name = fields.required_words("test");
    let script = fields.required_words("script").map(|words| Spanned { value: words.text, span: words.node.span });
    let mut replies = Vec::new();
    for name in ["model", "monitor"] {
        replies.extend(ids(fields, name));
    }
    // A simulated person, several cases, and how the replies are given come with the runner of tests.
    for name in ["user", "for", "vars", "scheme", "clock", "seed"] {
        fields.ignore(name);
    }
    let mut expected = Vec::new();
    for item in fields.required_list("dialogue").unwrap_or_default() {
        line(item, fields, &mut expected);
    }
    Some(WrittenTest { name, script, replies, expected })
}

fn ids(fields: &Fields<'_>, name: &'static str) -> Vec<Spanned<String>> {
    let Some(node) = fields.take(name) else { return vec![] };
    let NodeKind::Mapping(entries) = &node.kind else {
        // `monitor: off`, and a list of replies whoever asks, are for the runner to understand.
        return vec![];
    };
    for entry in entries {
        if !matches!(entry.value.kind, NodeKind::Sequence(_)) {
            let message =
                format!("the replies of `{}` must be a list, but this is {}", entry.key.value, entry.value.describe());
            let help = "write the replies in their order, each on a line of its own with `- `";
            let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), entry.value.span);
            fields.findings().report(diagnostic.with_help(help));
        }
    }
    entries.iter().map(|entry| entry.key.clone()).collect()
}

/// One item of `dialogue`: `ai`, `user` or `expect`.
fn line(item: &Arc<Node>, fields: &Fields<'_>, expected: &mut Vec<Expected>) {
    let Some(inner) = Fields::of(item, "an item of `dialogue`", fields.file(), fields.findings()) else { return };
    let (ai, user, expect) = (inner.entry("ai"), inner.take("user"), inner.take("expect"));
    if let Some(entry) = ai {
        answer(&entry.value, fields);
    }
    if let Some(node) = expect
        && let Some(what) = Fields::of(node, "`expect`", fields.file(), fields.findings())
    {
        for entry in what.take("variables").and_then(|node| node.as_mapping()).unwrap_or_default() {
            expected.push(Expected::Variable(entry.key.clone()));
        }
        expected.extend(what.name("exit_reason").map(Expected::ExitReason));
        expected.extend(what.name("location").map(Expected::Location));
        for name in ["metrics", "events", "model_calls", "prompt", "monitor_feedback", "status"] {
            what.ignore(name);
        }
        what.finish();
    }
    if ai.is_none() && user.is_none() && expect.is_none() {
        let message = "an item of `dialogue` says nothing";
        let span = if inner.span().is_empty() { Span::point(inner.span().start) } else { inner.span() };
        let help = "write what is said, as in `- user: 我叫小林`, or what should be, as in `- ai: { contains: 称呼 }`";
        let diagnostic = Diagnostic::error("missing-key", message, fields.file(), span);
        // An unknown key explains it already.
        if item.as_mapping().is_some_and(<[_]>::is_empty) {
            fields.findings().report(diagnostic.with_help(help));
        }
    }
    inner.finish();
}

/// What the AI must say: the words themselves, or a mapping that says how they must be in it.
fn answer(node: &Arc<Node>, fields: &Fields<'_>) {
    // Forms that only the runner of tests understands are not refused here.
    if node.as_mapping().is_none_or(<[_]>::is_empty) {
        return;
    }
    let Some(inner) = Fields::of(node, "`ai`", fields.file(), fields.findings()) else { return };
    let _ = inner.words("contains");
    for name in ["matches", "equals"] {
        inner.ignore(name);
    }
    inner.finish();
}
