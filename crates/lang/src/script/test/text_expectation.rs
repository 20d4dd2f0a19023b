//! Expectations of a message or a prompt: `equals`, `contains`, `not_contains`, `matches`, `any`.

use crate::message::message::Joint;
use crate::message::msg;
use std::sync::Arc;

use crate::message::message::Message;
use crate::script::fields::{Fields, is_null};
use crate::script::test::pattern::{TextPattern, pattern};
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

/// The maximum nesting depth of `any`.
const MAX_DEPTH: usize = 4;

/// The expectations of a text. All of them must hold.
#[derive(Clone, Debug, Default)]
pub struct TextExpectation {
    pub span: Span,
    /// The text equals one of these; white space at both ends is ignored.
    pub equals: Vec<Spanned<String>>,
    /// The text contains all of these.
    pub contains: Vec<Spanned<String>>,
    /// The text contains none of these.
    pub not_contains: Vec<Spanned<String>>,
    /// Each of these matches somewhere in the text.
    pub matches: Vec<TextPattern>,
    /// At least one of these holds, unless the list is empty.
    pub any: Vec<TextExpectation>,
    /// The action that must have sent the message.
    pub action: Option<Spanned<String>>,
}

impl TextExpectation {
    /// Whether it only forbids text: then it applies to all messages, and consumes none.
    pub fn only_forbids(&self) -> bool {
        self.equals.is_empty()
            && self.contains.is_empty()
            && self.matches.is_empty()
            && self.any.is_empty()
            && self.action.is_none()
    }

    /// The exact text that is expected, if nothing else is.
    pub fn exact_text(&self) -> Option<&str> {
        let only =
            self.contains.is_empty() && self.not_contains.is_empty() && self.matches.is_empty() && self.any.is_empty();
        match self.equals.as_slice() {
            [text] if only => Some(text.value.trim()),
            _ => None,
        }
    }

    /// Every action that it names, including those in `any`.
    pub fn actions(&self) -> Vec<&Spanned<String>> {
        self.action.iter().chain(self.any.iter().flat_map(Self::actions)).collect()
    }

    /// The first mismatch of a text without a sender, such as a prompt; `None` if the text matches.
    pub fn mismatch_in_text(&self, text: &str) -> Option<Message> {
        self.mismatch(text, None)
    }

    /// The first mismatch of a message; `None` if it matches. `by` is the action that sent it.
    pub fn mismatch_in_message(&self, text: &str, by: &str) -> Option<Message> {
        self.mismatch(text, Some(by))
    }

    fn mismatch(&self, text: &str, by: Option<&str>) -> Option<Message> {
        if let (Some(action), Some(by)) = (&self.action, by)
            && action.value != by
        {
            return Some(msg!("it is from `{by}`"));
        }
        let trimmed = text.trim();
        if !self.equals.is_empty() && !self.equals.iter().any(|equal| equal.value.trim() == trimmed) {
            return Some(msg!("the text is different"));
        }
        if let Some(missing) = self.contains.iter().find(|part| !text.contains(part.value.as_str())) {
            return Some(msg!("it does not contain `{}`", missing.value));
        }
        if let Some(forbidden) = self.not_contains.iter().find(|part| text.contains(part.value.as_str())) {
            return Some(msg!("it contains `{}`", forbidden.value));
        }
        if let Some(missing) = self.matches.iter().find(|pattern| !pattern.regex.is_match(text)) {
            return Some(msg!("it does not match `{}`", missing.source));
        }
        if !self.any.is_empty() && self.any.iter().all(|wording| wording.mismatch(text, by).is_some()) {
            return Some(msg!("it matches none of the items of `any`"));
        }
        None
    }

    /// The text, if only one is right.
    fn only_text(&self) -> Option<&str> {
        let others = self.contains.len() + self.matches.len() + self.not_contains.len() + self.any.len();
        match self.equals.as_slice() {
            [text] if others == 0 && self.action.is_none() => Some(&text.value),
            _ => None,
        }
    }

    /// Describes the expectation: the text if only one is right, else a description with the author's texts in quotes.
    pub fn describe(&self) -> Message {
        if let Some(text) = self.only_text() {
            return Message::text(text.to_owned());
        }
        let quoted = |text: &str| Message::text(format!("「{text}」"));
        let each = |texts: &[Spanned<String>]| texts.iter().map(|text| quoted(&text.value)).collect::<Vec<_>>();
        let mut parts = Vec::new();
        if let Some(action) = &self.action {
            parts.push(msg!("from `{}`", action.value.clone()));
        }
        if !self.equals.is_empty() {
            parts.push(Message::list(Joint::Or, each(&self.equals)));
        }
        if !self.contains.is_empty() {
            parts.push(msg!("containing {}", Message::list(Joint::And, each(&self.contains))));
        }
        if !self.matches.is_empty() {
            let patterns = self.matches.iter().map(|pattern| quoted(&pattern.source));
            parts.push(msg!("matching {}", Message::list(Joint::And, patterns)));
        }
        if !self.not_contains.is_empty() {
            parts.push(msg!("not containing {}", Message::list(Joint::And, each(&self.not_contains))));
        }
        if !self.any.is_empty() {
            parts.push(Message::list(Joint::CommaOr, self.any.iter().map(Self::describe)));
        }
        Message::list(Joint::Comma, parts)
    }
}

/// Reads the expectation of a text: the text itself, or a mapping of tests. `allow_action`: whether `action` is a field.
pub(crate) fn wording(
    node: &Arc<YamlNode>,
    what: &'static str,
    allow_action: bool,
    fields: &Fields<'_>,
) -> Option<TextExpectation> {
    read(node, what, allow_action, fields, MAX_DEPTH)
}

fn read(
    node: &Arc<YamlNode>,
    what: &'static str,
    allow_action: bool,
    fields: &Fields<'_>,
    depth: usize,
) -> Option<TextExpectation> {
    if let Some(scalar) = node.as_scalar().filter(|_| !is_null(node)) {
        let equals = vec![Spanned { value: scalar.text.clone(), span: node.span }];
        return Some(TextExpectation { span: node.span, equals, ..TextExpectation::default() });
    }
    let inner = fields.inner(node, what)?;
    if inner.is_empty() {
        let message = msg!("{what} does not specify any text");
        let help = "write the text itself, or a test for it, as in `{ contains: 称呼 }`";
        let span = if node.span.is_empty() { Span::point(node.span.start) } else { node.span };
        fields.error("missing-key", message, span, help);
        return None;
    }
    let equals = texts(&inner, "equals");
    let contains = texts(&inner, "contains");
    let not_contains = texts(&inner, "not_contains");
    let matches = texts(&inner, "matches").into_iter().filter_map(|written| pattern(written, &inner)).collect();
    let any = match inner.take("any").filter(|_| depth > 0) {
        Some(node) => match node.as_sequence() {
            Some([]) => {
                report_empty_list(&inner, "any", node);
                vec![]
            }
            Some(items) => items
                .iter()
                .filter_map(|item| read(item, "an item of `any`", allow_action, &inner, depth - 1))
                .collect(),
            None => {
                fields.findings().report(
                    inner
                        .wrong_type("any", "a list".into(), node)
                        .with_help("write each alternative on its own line, with `- `"),
                );
                vec![]
            }
        },
        None => vec![],
    };
    let action = if allow_action { inner.name("action") } else { None };
    inner.finish();
    Some(TextExpectation { span: node.span, equals, contains, not_contains, matches, any, action })
}

/// One text, or a list of texts.
pub(crate) fn texts(fields: &Fields<'_>, name: &'static str) -> Vec<Spanned<String>> {
    let Some(node) = fields.take(name) else { return vec![] };
    let read_text = |node: &Arc<YamlNode>| match node.as_scalar().filter(|_| !is_null(node)) {
        Some(scalar) => Some(Spanned { value: scalar.text.clone(), span: node.span }),
        None => {
            fields.report_wrong_type(
                name,
                "a string or a list of strings",
                node,
                "write the text, in quotes if it contains `:` or `{`",
            );
            None
        }
    };
    let texts: Vec<Spanned<String>> = match &node.kind {
        NodeKind::Sequence(items) if items.is_empty() => {
            report_empty_list(fields, name, node);
            vec![]
        }
        NodeKind::Sequence(items) => items.iter().filter_map(read_text).collect(),
        _ => read_text(node).into_iter().collect(),
    };
    for text in texts.iter().filter(|text| text.value.is_empty() && name != "equals") {
        let message = msg!("`{name}` is empty, and every text contains the empty string");
        let help = msg!("write some text, or remove it");
        fields.error("wrong-type", message, text.span, help);
    }
    texts
}

/// Reports an empty list, which any text would satisfy.
fn report_empty_list(fields: &Fields<'_>, name: &str, node: &YamlNode) {
    fields.error("empty-list", msg!("`{name}` is an empty list"), node.span, "write at least one, or remove it");
}
