//! Reads the limits of sessions and topics: `budget`, `time_budget`, `priority`, `strategy`, `for_each`
//! (docs/budgets.md).

use std::sync::Arc;

use crate::message::msg;
use crate::script::declare::variable_name;
use crate::script::fields::{Fields, TextField, is_null, shortened};
use crate::source::span::Spanned;
use crate::source::yaml::{NodeKind, YamlNode};

/// `budget` of a session; each limit is optional.
#[derive(Clone, Debug, Default)]
pub struct WrittenBudget {
    pub turns: Option<Spanned<u32>>,
    pub model_calls: Option<Spanned<u32>>,
    pub tokens: Option<Spanned<u32>>,
    /// The limit in minutes; time at rest does not count.
    pub minutes: Option<Spanned<u32>>,
}

pub fn budget(fields: &Fields<'_>) -> Option<WrittenBudget> {
    let node = fields.take("budget")?;
    let inner = fields.inner(node, "`budget`")?;
    let limit = |name| spanned(&inner, name, 1..=u32::MAX);
    let budget = WrittenBudget {
        turns: limit("turns"),
        model_calls: limit("model_calls"),
        tokens: limit("tokens"),
        minutes: limit("minutes"),
    };
    inner.finish();
    Some(budget)
}

pub(crate) fn spanned(
    fields: &Fields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<u32>,
) -> Option<Spanned<u32>> {
    let value = fields.integer(name, range)?;
    fields.take(name).map(|node| Spanned { value, span: node.span })
}

/// `strategy` of a topic: text, or a mapping.
#[derive(Clone, Debug, Default)]
pub struct WrittenStrategy {
    /// The text, or `text` of the mapping.
    pub text: Option<TextField>,
    pub min_completeness_requirement: Option<TextField>,
    pub retry_strategy: Option<TextField>,
    pub max_retry_count: Option<u32>,
    pub orchestration: bool,
}

pub fn strategy(fields: &Fields<'_>) -> Option<WrittenStrategy> {
    let node = fields.take("strategy")?;
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        return Some(WrittenStrategy { text: fields.text("strategy"), ..WrittenStrategy::default() });
    }
    table(node, fields)
}

fn table(node: &YamlNode, fields: &Fields<'_>) -> Option<WrittenStrategy> {
    let inner = fields.inner(node, "`strategy`")?;
    let text = inner.text("text");
    // Text for the monitor's prompt: no code compares it.
    let (min_completeness_requirement, retry_strategy) =
        (inner.text("min_completeness_requirement"), inner.text("retry_strategy"));
    let max_retry_count = inner.integer("max_retry_count", 0..=50);
    let orchestration = inner.choice("orchestration", &["on", "off"]) == Some("on");
    inner.finish();
    Some(WrittenStrategy { text, min_completeness_requirement, retry_strategy, max_retry_count, orchestration })
}

/// `for_each: { in, as }` of a topic.
#[derive(Clone, Debug)]
pub struct WrittenForEach {
    /// The list: an expression, usually the name of a variable.
    pub list: TextField,
    /// The name of the variable that holds one element.
    pub element: Spanned<String>,
}

pub fn for_each(fields: &Fields<'_>) -> Option<WrittenForEach> {
    let node = fields.take("for_each")?;
    if let Some(scalar) = node.as_scalar().filter(|_| !is_null(node)) {
        let message = msg!("{what} must be a mapping of fields, but this is {}", node.describe(), what = "`for_each`");
        let help = msg!(
            "write `for_each: {{ in: {list}, as: … }}`, with a name for one element after `as:`",
            list = shortened(&scalar.text)
        );
        fields.error("wrong-type", message, node.span, help);
        return None;
    }
    let inner = fields.inner(node, "`for_each`")?;
    let literal = inner.take("in").filter(|node| matches!(node.kind, NodeKind::Sequence(_)));
    let list = match literal {
        // An expression can contain this list, but only in quotes. The error is reported; an empty list in its place keeps the
        // element known.
        Some(node) => {
            let help =
                "write the name of a variable that holds the list, or put the list in quotes, as in `in: \"[1, 2]\"`";
            let diagnostic = inner.wrong_type("in", "text".into(), node);
            fields.findings().report(diagnostic.with_help(help));
            Some(TextField { text: "[]".to_owned(), node: Arc::clone(node) })
        }
        None => inner.required_text("in"),
    };
    let element = inner.required_text("as");
    inner.finish();
    let element = Spanned { span: element.as_ref()?.node.span, value: element?.text };
    let value = variable_name(&element, fields)?;
    Some(WrittenForEach { list: list?, element: Spanned { value, span: element.span } })
}
