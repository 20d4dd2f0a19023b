//! The conversation of a test, item by item: `ai`, `user`, `expect`, `wait`, `restart`.

use std::sync::Arc;
use std::time::Duration;

use crate::script::fields::{Fields, TextField, is_null};
use crate::script::limits::{WrittenBudget, budget};
use crate::script::test::expect::{Expect, expect};
use crate::script::test::text_expectation::{TextExpectation, wording};
use crate::script::test::time::duration;
use crate::source::span::Span;
use crate::source::yaml::{NodeKind, YamlNode};

/// How many turns a simulated person takes when nobody says otherwise.
pub const USUAL_TURNS: u32 = 20;

/// One thing that is said, done or expected.
#[derive(Clone, Debug)]
pub enum DialogueStep {
    Ai(Box<TextExpectation>),
    User(TextField),
    /// A simulated person goes on from here.
    Persona(Box<Persona>),
    Expect(Box<Expect>),
    /// Time passes, while the session is driven.
    Wait(Duration, Span),
    /// The process dies, and the session is taken up again.
    Restart(Box<Restart>),
}

impl DialogueStep {
    pub fn span(&self) -> Span {
        match self {
            Self::Ai(wording) => wording.span,
            Self::User(words) => words.node.span,
            Self::Persona(persona) => persona.span,
            Self::Expect(expect) => expect.span,
            Self::Wait(_, span) => *span,
            Self::Restart(restart) => restart.span,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Persona {
    pub span: Span,
    /// Who it is and how it talks.
    pub persona: TextField,
    /// What it wants from the conversation.
    pub goal: Option<TextField>,
    /// The model that plays it; without one, that of the test.
    pub model: Option<crate::source::span::Spanned<String>>,
    /// How many times it may speak.
    pub turns: u32,
    /// Whether it is no failure when it has spoken so often and the session still waits.
    pub bound_is_ok: bool,
}

/// How a process dies and another one goes on.
#[derive(Clone, Debug)]
pub struct Restart {
    pub span: Span,
    /// How long nobody drives the session.
    pub after: Duration,
    /// The budget that it goes on with (`--budget`).
    pub budget: Option<WrittenBudget>,
}

/// Reads one item of `dialogue` into the steps that it is made of: one that holds several of the fields is read from `wait` and
/// `restart` over `ai` and `user` to `expect`.
pub(crate) fn item(item: &Arc<YamlNode>, fields: &Fields<'_>, steps: &mut Vec<DialogueStep>) {
    let Some(inner) = fields.inner(item, "an item of `dialogue`") else { return };
    let before = steps.len();
    let mistakes = fields.findings().count();
    if let Some(node) = inner.take("wait")
        && let Some(time) = duration("wait", node, &inner)
    {
        steps.push(DialogueStep::Wait(time, node.span));
    }
    if let Some(restart) = restart(&inner) {
        steps.push(DialogueStep::Restart(Box::new(restart)));
    }
    let (ai, user) = (inner.take("ai"), inner.take("user"));
    if let Some(wording) = ai.and_then(|node| wording(node, "`ai`", true, &inner)) {
        steps.push(DialogueStep::Ai(Box::new(wording)));
    }
    if let Some(node) = user {
        steps.extend(said(node, &inner));
    }
    if let Some(expect) = inner.take("expect").and_then(|node| expect(node, &inner)) {
        steps.push(DialogueStep::Expect(Box::new(expect)));
    }
    if ai.is_some() && user.is_some() {
        let message = "an item of `dialogue` has both `ai` and `user`, so it is unclear who speaks first";
        let help = "start each of them with its own `- `";
        fields.error("conflicting-fields", message, item.span, help);
    }
    if steps.len() == before && mistakes == fields.findings().count() && item.as_mapping().is_some_and(<[_]>::is_empty)
    {
        let message = "an item of `dialogue` is empty";
        let span = if inner.span().is_empty() { Span::point(inner.span().start) } else { inner.span() };
        let help = "write what is said, as in `- user: 我叫小林`, or what to expect, as in `- ai: { contains: 称呼 }`";
        fields.error("missing-key", message, span, help);
    }
    inner.finish();
}

/// `user` of an item: the words, or who says them.
fn said(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<DialogueStep> {
    match &node.kind {
        NodeKind::Scalar(scalar) if !is_null(node) => {
            Some(DialogueStep::User(TextField { text: scalar.text.clone(), node: Arc::clone(node) }))
        }
        NodeKind::Mapping(_) => persona(node, fields).map(|persona| DialogueStep::Persona(Box::new(persona))),
        _ => {
            let diagnostic = fields.wrong_type("user", "the text of the user's message".into(), node);
            let help = "write the text; for an empty message, write `\"\"`";
            fields.findings().report(diagnostic.with_help(help));
            None
        }
    }
}

pub(crate) fn persona(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Persona> {
    let inner = fields.inner(node, "`user`")?;
    let persona = inner.required_words("persona");
    let goal = inner.words("goal");
    let model = inner.name("model");
    let turns = inner.integer("turns", 1..=200).unwrap_or(USUAL_TURNS);
    let bound_is_ok = inner.choice("bound", &["ok", "fail"]) == Some("ok");
    inner.finish();
    Some(Persona { span: node.span, persona: persona?, goal, model, turns, bound_is_ok })
}

fn restart(fields: &Fields<'_>) -> Option<Restart> {
    let node = fields.take("restart")?;
    let plain = Restart { span: node.span, after: Duration::ZERO, budget: None };
    match &node.kind {
        NodeKind::Mapping(_) => {
            let inner = fields.inner(node, "`restart`")?;
            let after = inner.take("after").map(|node| duration("after", node, &inner));
            let budget = budget(&inner);
            inner.finish();
            Some(Restart { after: after.unwrap_or(Some(Duration::ZERO))?, budget, ..plain })
        }
        _ => fields.boolean("restart").filter(|restart| *restart).map(|_| plain),
    }
}
