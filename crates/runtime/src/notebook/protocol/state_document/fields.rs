//! The fields of an object of a state document, by their current names, with what is wrong with them.

use std::cell::RefCell;
use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::{is_null, shortened};
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};
use serde_json::Value;

use crate::notebook::protocol::names::{PayloadObject, REMOVED, RENAMED};

/// Where problems of a document are reported.
#[derive(Clone, Copy)]
pub(crate) struct StateFindings<'a> {
    pub file: &'a Arc<SourceFile>,
    pub findings: &'a Findings,
}

impl StateFindings<'_> {
    pub(crate) fn error(&self, rule: &'static str, message: impl Into<Message>, span: Span) {
        self.findings.report(Diagnostic::error(rule, message, self.file, span));
    }

    pub(crate) fn warn(&self, rule: &'static str, message: impl Into<Message>, span: Span) {
        self.findings.report(Diagnostic::warning(rule, message, self.file, span));
    }

    fn wrong_type(&self, place: &str, expected: &'static str, node: &YamlNode) {
        let message =
            msg!("`{place}` must be {expected}, but this is {}", node.describe(), expected = Message::word(expected));
        self.error("wrong-type", message, node.span);
    }
}

/// An object of the document. Null counts as a missing field.
pub(crate) struct StateObject<'a> {
    report: StateFindings<'a>,
    /// Its path in the document, as in `observation.context`; empty for the root.
    pub place: String,
    pub span: Span,
    kind: Option<PayloadObject>,
    entries: &'a [YamlEntry],
    used: RefCell<Vec<bool>>,
}

impl<'a> StateObject<'a> {
    /// The object at `place`; none if the node is something else, which is reported.
    pub(crate) fn of(
        report: StateFindings<'a>,
        place: String,
        node: &'a YamlNode,
        kind: Option<PayloadObject>,
    ) -> Option<Self> {
        let NodeKind::Mapping(entries) = &node.kind else {
            report.wrong_type(&place, "an object", node);
            return None;
        };
        Some(Self { report, place, span: node.span, kind, entries, used: RefCell::new(vec![false; entries.len()]) })
    }

    pub(crate) const fn report(&self) -> StateFindings<'a> {
        self.report
    }

    pub(crate) fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// The value of a field, under its current name or else a legacy one. An empty name matches nothing.
    pub(crate) fn take(&self, name: &str) -> Option<&'a Arc<YamlNode>> {
        let legacy = |entry: &YamlEntry| {
            RENAMED.iter().any(|renamed| {
                Some(renamed.place) == self.kind && renamed.current == name && renamed.legacy == entry.key.value
            })
        };
        let position = |found: &dyn Fn(&YamlEntry) -> bool| self.entries.iter().position(found);
        let index = position(&|entry| entry.key.value == name).or_else(|| position(&legacy))?;
        if let Some(used) = self.used.borrow_mut().get_mut(index) {
            *used = true;
        }
        self.entries.get(index).map(|entry| &entry.value).filter(|node| !is_null(node))
    }

    /// The first of these fields that is there; the others stay, and are reported as unknown.
    pub(crate) fn take_first(&self, names: &[&str]) -> Option<&'a Arc<YamlNode>> {
        names.iter().find_map(|name| self.take(name))
    }

    pub(crate) fn ignore(&self, names: &[&str]) {
        names.iter().for_each(|name| _ = self.take(name));
    }

    pub(crate) fn object(&self, name: &str, kind: Option<PayloadObject>) -> Option<Self> {
        let node = self.take(name)?;
        Self::of(self.report, self.place_of(name), node, kind)
    }

    pub(crate) fn list(&self, name: &str) -> Option<&'a [Arc<YamlNode>]> {
        let node = self.take(name)?;
        let items = node.as_sequence();
        if items.is_none() {
            self.report.wrong_type(&self.place_of(name), "a list", node);
        }
        items
    }

    /// A text that is not blank. Numbers are accepted, because ids are often numbers.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = text_of(self.report, &self.place_of(name), self.take(name)?)?;
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// A text that is no id: a number is none.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        let node = self.take(name)?;
        let Some(Value::String(text)) = node.as_scalar().map(|scalar| scalar.value()) else {
            self.report.wrong_type(&self.place_of(name), "a string", node);
            return None;
        };
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// An integer of at least 0.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        let node = self.take(name)?;
        let count = node.to_json().as_u64();
        if count.is_none() {
            self.report.wrong_type(&self.place_of(name), "a whole number of at least 0", node);
        }
        count
    }

    /// Texts with their positions.
    pub(crate) fn texts(&self, name: &str) -> Vec<(String, Span)> {
        let items = self.list(name).unwrap_or_default();
        let place = self.place_of(name);
        let text = |(index, node): (usize, &Arc<YamlNode>)| {
            Some((text_of(self.report, &format!("{place}[{index}]"), node)?, node.span))
        };
        items.iter().enumerate().filter_map(text).collect()
    }

    /// A text, or the last text of a list.
    pub(crate) fn last_text(&self, name: &str) -> Option<String> {
        let node = self.take(name)?;
        match node.as_sequence() {
            None => self.text(name),
            Some(_) => self.texts(name).pop().map(|(text, _)| text),
        }
    }

    /// Reports the fields that nothing was read from: they are not taken over.
    pub(crate) fn finish(self) {
        let used = self.used.borrow();
        for (entry, _) in self.entries.iter().zip(used.iter()).filter(|(_, used)| !**used) {
            let name = entry.key.value.as_str();
            let place = self.place_of(&shortened(name));
            let message = match REMOVED.contains(&name) {
                true => msg!("`{place}` is no longer part of the protocol, and is not taken over"),
                false => msg!("`{place}` is not part of a state, and is not taken over"),
            };
            self.report.warn("unknown-key", message, entry.key.span);
        }
    }
}

fn text_of(report: StateFindings<'_>, place: &str, node: &YamlNode) -> Option<String> {
    match node.as_scalar().map(|scalar| scalar.value()) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => {
            report.wrong_type(place, "a string", node);
            None
        }
    }
}
