//! Checks the keys of mappings: each must be text and unique.

use crate::message::msg;
use std::collections::HashMap;
use std::collections::hash_map;

use crate::source::compose::{ComposeFrame, Composer, Finished, FrameKind, MAX_DIAGNOSTICS, PendingKey};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::misreading::{self, Misreading};
use crate::source::span::{Span, Spanned};
use crate::source::text;
use crate::source::yaml::{ScalarStyle, YamlEntry, YamlNode};

/// Up to this many keys are compared pairwise: this is faster than a hash map, and most mappings have fewer.
const FEW_ENTRIES: usize = 16;

impl Composer<'_> {
    /// Keeps the first entry of each key and reports the others.
    pub(crate) fn without_duplicates(&mut self, entries: Vec<YamlEntry>) -> Vec<YamlEntry> {
        if entries.len() <= FEW_ENTRIES {
            let before = |number: usize| entries.iter().take(number);
            let is_duplicate =
                |(number, entry): (usize, &YamlEntry)| before(number).any(|other| other.key.value == entry.key.value);
            if !entries.iter().enumerate().any(is_duplicate) {
                return entries;
            }
        }
        let mut first = HashMap::with_capacity(entries.len());
        let mut found = Vec::new();
        let mut keep = Vec::with_capacity(entries.len());
        for entry in &entries {
            match first.entry(entry.key.value.as_str()) {
                hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(entry.key.span);
                    keep.push(true);
                }
                hash_map::Entry::Occupied(occupied) => {
                    keep.push(false);
                    if found.len() < MAX_DIAGNOSTICS {
                        found.push((entry.key.clone(), *occupied.get()));
                    }
                }
            }
        }
        let new_items = entries.first().and_then(|first| self.items_without_dash(first, &found));
        if let Some((at, diagnostics)) = new_items {
            found.retain(|(key, _)| key.span.start < at);
            diagnostics.into_iter().for_each(|diagnostic| self.report(diagnostic));
        }
        for (key, earlier) in found {
            let message = msg!("`{}` appears more than once in this mapping", text::excerpt(&key.value));
            self.report(
                Diagnostic::error("duplicate-key", message, self.file, key.span)
                    .with_help("keep only one of them, or rename one")
                    .with_related("first occurrence here", self.file, earlier),
            );
        }
        if keep.iter().all(|keep| *keep) {
            return entries;
        }
        entries.into_iter().zip(keep).filter_map(|(entry, keep)| keep.then_some(entry)).collect()
    }

    /// List items that start without a dash: the first key of an item is repeated in the same column, and keys that are repeated
    /// after it belong to a new item. Returns the start of the first such item, and a diagnostic for each.
    fn items_without_dash(
        &self,
        first: &YamlEntry,
        found: &[(Spanned<String>, Span)],
    ) -> Option<(usize, Vec<Diagnostic>)> {
        let file = self.file;
        let before = |span: Span| {
            let line = file.line_span(file.line(span.start))?;
            Some(file.slice(Span::new(line.start, span.start)))
        };
        let dash = before(first.key.span)?;
        let width = dash.len();
        // `- key`, with only one space between the dash and the key, so that a dash also fits on the other line.
        if dash.strip_suffix("- ").is_none_or(|margin| !margin.trim_matches([' ', '-']).is_empty()) {
            return None;
        }
        let column =
            |span: Span| before(span).filter(|before| before.len() == width && before.trim_matches(' ').is_empty());
        let repeated = found.iter().filter(|(key, _)| key.value == first.key.value && column(key.span).is_some());
        let reports: Vec<(usize, Diagnostic)> = repeated
            .map(|(key, earlier)| {
                let name = text::excerpt(&key.value);
                let message = msg!("`{name}` appears more than once in this mapping");
                let help = msg!("if a new list item starts here, write `- {name}`; if not, keep one of them");
                let edits = vec![Edit::replace(Span::new(key.span.start - 2, key.span.start), "- ")];
                let diagnostic = Diagnostic::error("duplicate-key", message, file, key.span)
                    .with_help(help)
                    .with_related("first occurrence here", file, *earlier)
                    .with_fix("start a new item", edits);
                (key.span.start, diagnostic)
            })
            .collect();
        let at = reports.first()?.0;
        Some((at, reports.into_iter().map(|(_, diagnostic)| diagnostic).collect()))
    }

    /// The template that was read as the innermost mapping.
    fn template(&self) -> Option<Misreading> {
        let frame = self.frames.last().filter(|frame| frame.flow)?;
        let inside_flow = self.frames.iter().rev().nth(1).is_some_and(|outer| outer.flow);
        misreading::template(self.file, frame.start, inside_flow)
    }

    /// Takes a node as the key of the innermost mapping, or rejects it.
    pub(crate) fn key(&mut self, node: Finished, source: Span) {
        let accepted = self.is_key(node.node(), source);
        let starts_template = |frame: &ComposeFrame| frame.flow && misreading::is_template(self.file, frame.start);
        let is_template = node.node().as_scalar().is_none() && self.frames.last().is_some_and(starts_template);
        if let Some(ComposeFrame { kind: FrameKind::Mapping { key, template, .. }, .. }) = self.frames.last_mut() {
            *template |= is_template;
            *key =
                if accepted { PendingKey::Key(Spanned::new(node.into_text(), source)) } else { PendingKey::Rejected };
        }
    }

    /// Whether a node can be a key; reports it if not.
    fn is_key(&mut self, node: &YamlNode, source: Span) -> bool {
        let Some(scalar) = node.as_scalar() else {
            self.report_with(|composer| match composer.template() {
                Some(found) => found.into_diagnostic("key-not-text", composer.file),
                None => {
                    let message = msg!("{} cannot be a key", node.describe());
                    Diagnostic::error("key-not-text", message, composer.file, source)
                        .with_help("a key is text, followed by a colon and a space")
                }
            });
            return false;
        };
        let plain = scalar.style == ScalarStyle::Plain && scalar.tag.is_none();
        if plain && source.is_empty() {
            let span = self.file.clamp(Span::new(source.start, source.start + 1));
            self.report(
                Diagnostic::error("key-not-text", "there is no key before this colon", self.file, span)
                    .with_help("write the key before the colon, or put text that starts with `:` in quotes"),
            );
            return false;
        }
        if plain && scalar.text == "<<" {
            let help = "YAML 1.2 has no merge keys: write out the keys, or put the shared part under a separate key";
            let message = "`<<` does not merge mappings here";
            self.report(Diagnostic::error("merge-key", message, self.file, source).with_help(help));
            return false;
        }
        if let Some(found) = misreading::wide_indentation(self.file, source.start).filter(|_| plain) {
            self.stop(found.into_diagnostic("yaml-syntax", self.file));
            return false;
        }
        true
    }
}
