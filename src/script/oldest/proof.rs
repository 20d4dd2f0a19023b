//! The proof that edits do what they should and nothing else: what they make is read again before they are offered.

use std::sync::Arc;

use serde_json::Value;

use crate::source::comments::comments;
use crate::source::diagnostic::Edit;
use crate::source::edits::apply;
use crate::source::text::SourceFile;
use crate::source::yaml::parse;

/// Whether the edits turn the file into one that YAML reads without any finding as `expected`, with all the comments.
pub fn proven(file: &SourceFile, edits: &[Edit], expected: &Value) -> bool {
    let Ok(text) = apply(file.text(), edits) else { return false };
    let made = Arc::new(SourceFile::new(file.name(), text));
    let parsed = parse(&made);
    parsed.diagnostics.is_empty()
        && parsed.root.is_some_and(|root| root.to_json() == *expected)
        && commented(&made) == commented(file)
}

/// The comments, in an order that does not depend on their places.
fn commented(file: &SourceFile) -> Vec<&str> {
    let mut found: Vec<&str> = comments(file).comments.iter().map(|span| file.slice(*span)).collect();
    found.sort_unstable();
    found
}
