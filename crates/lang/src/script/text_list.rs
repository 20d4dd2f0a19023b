//! Fields that hold one text, which must say something, or a list of texts.

use crate::message::msg;
use crate::script::fields::{Fields, TextField};
use crate::source::diagnostic::Diagnostic;
use crate::source::yaml::NodeKind;

impl Fields<'_> {
    /// The text of a required field that somebody reads, or that names a place: `missing-key` if it has nothing but spaces.
    pub fn required_content(&self, name: &'static str) -> Option<TextField> {
        let field = self.required_text(name)?;
        if !field.text.trim().is_empty() {
            return Some(field);
        }
        let message = msg!("`{name}` of {} is empty", self.subject());
        let diagnostic = Diagnostic::error("missing-key", message, self.file(), field.node.span);
        self.findings().report(diagnostic.with_help(msg!("write something after `{name}:`")));
        None
    }

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
