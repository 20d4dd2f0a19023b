//! Fields that hold one text or a list of texts.

use crate::script::fields::{Fields, TextField};
use crate::source::yaml::NodeKind;

impl Fields<'_> {
    /// One text, or a list of texts with at least one item.
    pub fn texts(&self, name: &'static str) -> Vec<TextField> {
        match self.take(name).map(|node| &node.kind) {
            Some(NodeKind::Sequence(_)) => {
                let items = self.required_list(name).unwrap_or_default();
                items.iter().filter_map(|item| self.as_text(name, item)).collect()
            }
            _ => self.text(name).into_iter().collect(),
        }
    }
}
