//! Expected counts: in total, or by name.

use crate::message::msg;
use std::sync::Arc;

use crate::script::fields::Fields;
use crate::script::test::value_expectation::{ValueExpectation, wanted};
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

#[derive(Clone, Debug)]
pub struct ExpectedCounts {
    pub span: Span,
    pub total: Option<ValueExpectation>,
    /// By name.
    pub by: Vec<(Spanned<String>, ValueExpectation)>,
}

/// Reads counts: a number, a test of a number, or either of them by name.
pub(crate) fn counts(fields: &Fields<'_>, name: &'static str) -> Option<ExpectedCounts> {
    let node = fields.take(name)?;
    let read_count = |node: &Arc<YamlNode>| {
        let value = node.to_json();
        let is_count = match &node.kind {
            NodeKind::Mapping(_) => true,
            _ => value.as_u64().is_some(),
        };
        if !is_count {
            fields.report_wrong_type(name, "a whole number", node, "write a count, as in `2`, or `{ at_least: 1 }`");
            return None;
        }
        wanted(node, fields)
    };
    let NodeKind::Mapping(entries) = &node.kind else {
        return Some(ExpectedCounts { span: node.span, total: Some(read_count(node)?), by: vec![] });
    };
    if let Some(total) = wanted(node, fields).filter(|wanted| wanted.exact_value().is_none()) {
        return Some(ExpectedCounts { span: node.span, total: Some(total), by: vec![] });
    }
    if entries.is_empty() {
        let message = msg!("`{name}` does not specify what to count");
        let help = "write a number, or a number for each name";
        fields.error("empty-list", message, node.span, help);
    }
    let by = entries.iter().filter_map(|entry| Some((entry.key.clone(), read_count(&entry.value)?))).collect();
    Some(ExpectedCounts { span: node.span, total: None, by })
}
