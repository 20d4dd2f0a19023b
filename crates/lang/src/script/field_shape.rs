//! The types of values that the fields of documents have.

use crate::script::fields::is_null;
use crate::script::inline_list::inline_list;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};

/// The type of value that is read from a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldShape {
    Text,
    Boolean,
    Number,
    List,
}

impl FieldShape {
    /// Whether `node` in `file` has this type, or is certainly meant as it: its wrong type then has a fix of its own.
    pub(crate) fn fits(self, file: &SourceFile, node: &YamlNode) -> bool {
        match (self, &node.kind) {
            (Self::List, NodeKind::Sequence(_)) => true,
            (Self::List, NodeKind::Scalar(_)) => inline_list(file.slice(node.span)).is_some(),
            (Self::Text, NodeKind::Scalar(_)) => !is_null(node),
            (Self::Boolean, NodeKind::Scalar(scalar)) => boolean_of_word(&scalar.text).is_some(),
            (Self::Number, NodeKind::Scalar(scalar)) => {
                scalar.value().is_u64() || scalar.text.trim().parse::<u32>().is_ok()
            }
            _ => false,
        }
    }
}

/// What a word means that is written in the place of `true` or `false`.
pub(crate) fn boolean_of_word(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" | "是" => Some("true"),
        "no" | "off" | "n" | "false" | "否" => Some("false"),
        _ => None,
    }
}
