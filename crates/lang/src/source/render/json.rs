//! Renders diagnostics as one JSON document (docs/validate.md).

use crate::message::message::Message;
use serde::Serialize;

use crate::source::diagnostic::{Diagnostic, Fix, Related, Severity, order};
use crate::source::render::redaction::without_secrets;

/// The version of the document format.
const VERSION: u32 = 1;

/// The document on one line, with a trailing line break: the number of checked `files`, and all diagnostics by file and
/// position. All fields are always present: `help` may be null, `related` and `fixes` empty. Lines and columns count from 1,
/// columns in characters; `end_line`, `end_column` and `byte_end` are the position after the last character.
pub fn json(files: usize, diagnostics: &[Diagnostic]) -> String {
    let diagnostics = without_secrets(diagnostics);
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by(|a, b| order(a, b));
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let document = Document {
        version: VERSION,
        files,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        diagnostics: sorted.into_iter().map(Finding::of).collect(),
    };
    // This cannot fail: the keys of the document are names, its values texts and numbers.
    serde_json::to_string(&document).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    files: usize,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<Finding<'a>>,
}

#[derive(Serialize)]
struct Finding<'a> {
    rule: &'a str,
    severity: &'a str,
    message: &'a Message,
    help: Option<&'a Message>,
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    byte_start: usize,
    byte_end: usize,
    related: Vec<Place<'a>>,
    fixes: Vec<Change<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    message: &'a Message,
    file: &'a str,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct Change<'a> {
    title: &'a Message,
    sure: bool,
    edits: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
struct Replacement<'a> {
    byte_start: usize,
    byte_end: usize,
    text: &'a str,
}

impl<'a> Finding<'a> {
    fn of(diagnostic: &'a Diagnostic) -> Self {
        let span = diagnostic.file.clamp(diagnostic.span);
        let (line, column) = diagnostic.file.line_column(span.start);
        let (end_line, end_column) = diagnostic.file.line_column(span.end);
        Self {
            rule: diagnostic.rule,
            severity: diagnostic.severity.name(),
            message: &diagnostic.message,
            help: diagnostic.help.as_ref(),
            file: diagnostic.file.name(),
            line,
            column,
            end_line,
            end_column,
            byte_start: span.start,
            byte_end: span.end,
            related: diagnostic.related.iter().map(Place::of).collect(),
            fixes: diagnostic.fixes.iter().map(Change::of).collect(),
        }
    }
}

impl<'a> Place<'a> {
    fn of(related: &'a Related) -> Self {
        let (line, column) = related.file.line_column(related.span.start);
        Self { message: &related.message, file: related.file.name(), line, column }
    }
}

impl<'a> Change<'a> {
    fn of(fix: &'a Fix) -> Self {
        let edits = fix.edits.iter().map(|edit| Replacement {
            byte_start: edit.span.start,
            byte_end: edit.span.end,
            text: &edit.text,
        });
        Self { title: &fix.title, sure: fix.sure, edits: edits.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json as value};

    use super::*;
    use crate::source::diagnostic::Edit;
    use crate::source::span::Span;
    use crate::source::text::SourceFile;

    #[test]
    fn every_field_is_present_even_if_it_is_empty() {
        let file = Arc::new(SourceFile::new("脚本/a.yaml", "姓名: 张三\ncontnet: x\n"));
        let other = Arc::new(SourceFile::new("b.yaml", "\ncontent: x\n"));
        let key = Span::new(15, 22);
        let found = [
            Diagnostic::info("later", "the end", &file, Span::point(99)),
            Diagnostic::warning("bare", "over two lines", &file, Span::new(8, 22)),
            Diagnostic::error("unknown-key", "`contnet`", &file, key)
                .with_help("did you mean `content`?")
                .with_related("it is called so here", &other, Span::new(1, 8))
                .with_fix("write `content`", vec![Edit::replace(key, "content")]),
        ];
        let text = json(3, &found);
        assert!(text.ends_with("}\n") && text.lines().count() == 1);
        let expected = value!({
            "version": 1, "files": 3, "errors": 1, "warnings": 1,
            "diagnostics": [
                {
                    "rule": "bare", "severity": "warning", "message": "over two lines", "help": null, "file": "脚本/a.yaml",
                    "line": 1, "column": 5, "end_line": 2, "end_column": 8, "byte_start": 8, "byte_end": 22,
                    "related": [], "fixes": [],
                },
                {
                    "rule": "unknown-key", "severity": "error", "message": "`contnet`", "help": "did you mean `content`?",
                    "file": "脚本/a.yaml", "line": 2, "column": 1, "end_line": 2, "end_column": 8, "byte_start": 15,
                    "byte_end": 22,
                    "related": [{"message": "it is called so here", "file": "b.yaml", "line": 2, "column": 1}],
                    "fixes": [{"title": "write `content`", "sure": false, "edits": [{"byte_start": 15, "byte_end": 22, "text": "content"}]}],
                },
                {
                    "rule": "later", "severity": "info", "message": "the end", "help": null, "file": "脚本/a.yaml", "line": 3,
                    "column": 1, "end_line": 3, "end_column": 1, "byte_start": 26, "byte_end": 26, "related": [], "fixes": [],
                },
            ],
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        let shown = expected.to_string() + "\n";
        assert_eq!(text, shown, "the fields stand in the order of docs/validate.md");
    }

    #[test]
    fn thousands_of_findings_in_one_line_of_megabytes_are_reported_at_once() {
        let file = Arc::new(SourceFile::new("a.yaml", "好".repeat(1_000_000)));
        let found: Vec<Diagnostic> =
            (0..3_000).map(|n| Diagnostic::error("x", "m", &file, Span::new(n * 900, 3_000_000))).collect();
        // Counting each column from the start of its line would take minutes here.
        let document: Value = serde_json::from_str(&json(1, &found)).unwrap();
        let last = &document["diagnostics"][2_999];
        assert_eq!((&last["column"], &last["end_column"]), (&value!(899_701), &value!(1_000_001)));
        assert_eq!(document["diagnostics"].as_array().unwrap().len(), 3_000);
    }
}
