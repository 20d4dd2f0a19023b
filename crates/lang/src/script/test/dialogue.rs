//! The conversation of a test, item by item: `ai`, `user`, `expect`, `wait`, `restart`, `decide`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::script::fields::{Fields, TextField, is_null};
use crate::script::limits::{WrittenBudget, budget};
use crate::script::test::expect::{Expect, expect};
use crate::script::test::text_expectation::{TextExpectation, wording};
use crate::script::test::time::duration;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

/// The default number of turns of a simulated person.
pub(crate) const DEFAULT_TURNS: u32 = 20;

/// One message, operation or expectation.
#[derive(Clone, Debug)]
pub enum DialogueStep {
    Ai(Box<TextExpectation>),
    User(TextField),
    /// A simulated person continues from here.
    Persona(Box<Persona>),
    Expect(Box<Expect>),
    /// Time passes while the session is driven.
    Wait(Duration, Span),
    /// The process dies, and the session is resumed.
    Restart(Box<Restart>),
    /// Somebody decides about the approval that the session waits for.
    Decide(Box<Decide>),
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
            Self::Decide(decide) => decide.span,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Persona {
    pub span: Span,
    /// Who the person is and how they talk.
    pub persona: TextField,
    /// What the person wants from the conversation.
    pub goal: Option<TextField>,
    /// The model that plays the person; by default the model of the test.
    pub model: Option<Spanned<String>>,
    /// The maximum number of messages.
    pub turns: u32,
    /// Whether it is not a failure if this limit is reached and the session still waits.
    pub limit_is_ok: bool,
}

/// A decision about an approval.
#[derive(Clone, Debug)]
pub struct Decide {
    pub span: Span,
    /// The action that asks, if it must be this one.
    pub step: Option<Spanned<String>>,
    /// `approve`, `reject`, `push_back`, `edit` or `answer`.
    pub decision: &'static str,
    pub by: Option<String>,
    pub comment: Option<String>,
    /// The values of the form, of the call or of its answer.
    pub values: Vec<(String, Value)>,
}

/// A process dies and another one continues.
#[derive(Clone, Debug)]
pub struct Restart {
    pub span: Span,
    /// How long no process drives the session.
    pub after: Duration,
    /// The budget with which the session continues (`--budget`).
    pub budget: Option<WrittenBudget>,
}

/// Reads one item of `dialogue` into its steps. The fields of an item with several are read in the order `wait`, `restart`,
/// `decide`, `ai`, `user`, `expect`.
pub(crate) fn item(item: &Arc<YamlNode>, fields: &Fields<'_>, steps: &mut Vec<DialogueStep>) {
    let Some(inner) = fields.inner(item, "an item of `dialogue`") else { return };
    let before = steps.len();
    let count_before = fields.findings().count();
    if let Some(node) = inner.take("wait")
        && let Some(time) = duration("wait", node, &inner)
    {
        steps.push(DialogueStep::Wait(time, node.span));
    }
    if let Some(restart) = restart(&inner) {
        steps.push(DialogueStep::Restart(Box::new(restart)));
    }
    if let Some(decide) = decide(&inner) {
        steps.push(DialogueStep::Decide(Box::new(decide)));
    }
    let (ai, user) = (inner.take("ai"), inner.take("user"));
    if let Some(wording) = ai.and_then(|node| wording(node, "`ai`", true, &inner)) {
        steps.push(DialogueStep::Ai(Box::new(wording)));
    }
    if let Some(node) = user {
        steps.extend(user_step(node, &inner));
    }
    if let Some(expect) = inner.take("expect").and_then(|node| expect(node, &inner)) {
        steps.push(DialogueStep::Expect(Box::new(expect)));
    }
    if ai.is_some() && user.is_some() {
        let message = "an item of `dialogue` has both `ai` and `user`, so it is unclear who speaks first";
        let help = "start each of them with its own `- `";
        fields.error("conflicting-fields", message, item.span, help);
    }
    if steps.len() == before
        && count_before == fields.findings().count()
        && item.as_mapping().is_some_and(<[_]>::is_empty)
    {
        let message = "an item of `dialogue` is empty";
        let span = if inner.span().is_empty() { Span::point(inner.span().start) } else { inner.span() };
        let help = "write what is said, as in `- user: 我叫小林`, or what to expect, as in `- ai: { contains: 称呼 }`";
        fields.error("missing-key", message, span, help);
    }
    inner.finish();
}

/// `user` of an item: the text, or the simulated person.
fn user_step(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<DialogueStep> {
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
    let persona = inner.required_text("persona");
    let goal = inner.text("goal");
    let model = inner.name("model");
    let turns = inner.integer("turns", 1..=200).unwrap_or(DEFAULT_TURNS);
    let bound_is_ok = inner.choice("bound", &["ok", "fail"]) == Some("ok");
    inner.finish();
    Some(Persona { span: node.span, persona: persona?, goal, model, turns, limit_is_ok: bound_is_ok })
}

/// `decide` of an item: the decision, or a mapping with who made it, why, and the values of the form.
fn decide(fields: &Fields<'_>) -> Option<Decide> {
    const DECISIONS: [&str; 5] = ["approve", "reject", "push_back", "edit", "answer"];
    let node = fields.take("decide")?;
    let NodeKind::Mapping(_) = &node.kind else {
        let decision = fields.choice("decide", &DECISIONS)?;
        return Some(Decide { span: node.span, step: None, decision, by: None, comment: None, values: vec![] });
    };
    let inner = fields.inner(node, "`decide`")?;
    inner.required("decision");
    let decision = inner.choice("decision", &DECISIONS);
    let (by, comment) = (inner.text("by").map(|text| text.text), inner.text("comment").map(|text| text.text));
    let step = inner.name("step");
    let values = inner.take("values").and_then(|node| inner.inner(node, "`values`").map(|_| node.to_json()));
    let values = values.as_ref().and_then(Value::as_object).into_iter().flatten();
    let values = values.map(|(name, value)| (name.clone(), value.clone())).collect();
    inner.finish();
    Some(Decide { span: node.span, step, decision: decision?, by, comment, values })
}

fn restart(fields: &Fields<'_>) -> Option<Restart> {
    let node = fields.take("restart")?;
    let immediate = Restart { span: node.span, after: Duration::ZERO, budget: None };
    match &node.kind {
        NodeKind::Mapping(_) => {
            let inner = fields.inner(node, "`restart`")?;
            let after = inner.take("after").map(|node| duration("after", node, &inner));
            let budget = budget(&inner);
            inner.finish();
            Some(Restart { after: after.unwrap_or(Some(Duration::ZERO))?, budget, ..immediate })
        }
        _ => fields.boolean("restart").filter(|restart| *restart).map(|_| immediate),
    }
}
