//! Builds YAML trees in memory, with positions in the file that they stand for.

use std::sync::Arc;

use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, Scalar, ScalarStyle, YamlEntry, YamlNode};

/// A text, which is not read as a number or a boolean.
pub(crate) fn text(text: impl Into<String>, span: Span) -> Arc<YamlNode> {
    let scalar = Scalar { text: text.into(), style: ScalarStyle::DoubleQuoted, tag: None };
    Arc::new(YamlNode { span, kind: NodeKind::Scalar(scalar) })
}

pub(crate) fn entry(key: &str, span: Span, value: Arc<YamlNode>) -> YamlEntry {
    YamlEntry { key: Spanned { value: key.to_owned(), span }, value }
}

pub(crate) fn mapping(entries: Vec<YamlEntry>, span: Span) -> Arc<YamlNode> {
    Arc::new(YamlNode { span, kind: NodeKind::Mapping(entries) })
}

pub(crate) fn sequence(items: Vec<Arc<YamlNode>>, span: Span) -> Arc<YamlNode> {
    Arc::new(YamlNode { span, kind: NodeKind::Sequence(items) })
}
