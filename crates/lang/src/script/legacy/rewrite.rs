//! Collects the edits of a file that is rewritten: replacements, and lines that are indented.

use crate::message::message::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::script::lines::end;
use crate::source::comments::{LongText, comments};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Why the format of a document cannot be converted safely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousRewrite {
    pub span: Span,
    /// The reason, as the second half of a sentence: "there is no comma after this field".
    pub reason: Message,
    /// Related positions, each with a label.
    pub others: Vec<(Span, &'static str)>,
    /// The help, if it is other than to rewrite the whole file by hand.
    pub help: Option<&'static str>,
}

impl AmbiguousRewrite {
    pub fn at(span: Span, reason: impl Into<Message>) -> Self {
        Self { span, reason: reason.into(), others: Vec::new(), help: None }
    }

    /// Adds related positions with a label, and a help.
    pub fn with(self, others: impl IntoIterator<Item = Span>, label: &'static str, help: &'static str) -> Self {
        Self { others: others.into_iter().map(|span| (span, label)).collect(), help: Some(help), ..self }
    }

    /// Adds this to a diagnostic. `manual_help` is the help if there is no specific one.
    pub(crate) fn add_to(
        self,
        diagnostic: Diagnostic,
        file: &Arc<SourceFile>,
        manual_help: &'static str,
    ) -> Diagnostic {
        let diagnostic =
            diagnostic.with_help(self.help.unwrap_or(manual_help)).with_related(self.reason, file, self.span);
        self.others.into_iter().fold(diagnostic, |diagnostic, (span, label)| diagnostic.with_related(label, file, span))
    }
}

/// The edits of one file, not sorted yet.
pub(crate) struct Rewrite<'f> {
    file: &'f SourceFile,
    comments: Vec<Span>,
    /// Multi-line texts, each with its indentation.
    texts: Vec<(LongText, usize)>,
    /// By start and, at the same start, by order of insertion.
    edits: BTreeMap<(usize, usize), Edit>,
    /// The number of edits so far.
    edit_count: usize,
    /// The columns added to each line.
    added_indents: BTreeMap<usize, usize>,
}

impl<'f> Rewrite<'f> {
    /// For a file that is valid YAML.
    pub(crate) fn of(file: &'f SourceFile) -> Self {
        let found = comments(file);
        let texts = found.texts.into_iter().map(|text| (text, margin(file, &text))).collect();
        Self {
            file,
            comments: found.comments,
            texts,
            edits: BTreeMap::new(),
            edit_count: 0,
            added_indents: BTreeMap::new(),
        }
    }

    pub(crate) fn file(&self) -> &'f SourceFile {
        self.file
    }

    pub(crate) fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.edit_count += 1;
        self.edits.insert((span.start, self.edit_count), Edit::replace(span, text));
    }

    /// Inserts text at `byte`. Several texts at the same byte keep their order.
    pub(crate) fn insert(&mut self, byte: usize, text: impl Into<String>) {
        self.replace(Span::point(byte), text);
    }

    /// Renames a key and keeps its quotes.
    pub(crate) fn rename(&mut self, key: Span, name: &str) {
        let name = match self.file.slice(key).chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{name}{quote}"),
            _ => name.to_owned(),
        };
        self.replace(key, name);
    }

    /// Indents a line by `by` more columns.
    pub(crate) fn indent_line(&mut self, line: usize, by: usize) {
        *self.added_indents.entry(line).or_default() += by;
    }

    /// The number of columns added to a line.
    pub(crate) fn added_indent(&self, line: usize) -> usize {
        self.added_indents.get(&line).copied().unwrap_or(0)
    }

    /// The column of a key in block style, and whether it is the first in its line. `None` if anything but white space and the
    /// dashes of lists is before it.
    pub(crate) fn column(&self, key: Span) -> Option<(usize, bool)> {
        let line = self.file.line_span(self.file.line(key.start))?;
        let before = self.file.slice(Span::new(line.start, key.start));
        let blank = before.chars().all(|c| c == ' ');
        (blank || before.chars().all(|c| matches!(c, ' ' | '-'))).then_some((before.len(), blank))
    }

    /// The column of the comment, if the line contains nothing else.
    pub(crate) fn comment_line(&self, line: usize) -> Option<usize> {
        let span = self.file.line_span(line)?;
        let text = self.file.slice(span);
        let column = text.len() - text.trim_start_matches([' ', '\t']).len();
        let start = span.start + column;
        let is_comment = self.comments.binary_search_by(|comment| comment.start.cmp(&start)).is_ok();
        is_comment.then_some(column)
    }

    /// Whether the line is blank in YAML: inside a text block, spaces beyond the margin are part of the text.
    pub(crate) fn is_blank(&self, line: usize) -> bool {
        let text = |line| self.file.line_span(line).map_or("", |span| self.file.slice(span));
        let current = text(line);
        if !current.trim().is_empty() {
            return false;
        }
        let started = self.texts.partition_point(|(long, _)| long.line < line);
        let Some((long, margin)) = started.checked_sub(1).and_then(|last| self.texts.get(last)) else { return true };
        // A text is assumed to end with at most this many lines of spaces.
        const MAX_LINES: usize = 1_000;
        let near = current.len() > *margin && line.saturating_sub(long.last) < MAX_LINES;
        !(near && (long.last + 1..line).all(|line| text(line).trim().is_empty()))
    }

    /// Removes and returns the text of `span` with the edits made so far, to insert it elsewhere.
    pub(crate) fn take(&mut self, span: Span) -> String {
        let lines = self.file.line(span.start)..=self.file.line(span.end);
        let lines: Vec<(usize, usize)> = self.added_indents.range(lines).map(|(line, by)| (*line, *by)).collect();
        let mut taken: Vec<Edit> = Vec::new();
        for (line, by) in lines {
            let start = self.file.line_span(line).map_or(span.end, |at| at.start);
            if span.start <= start && start < span.end {
                self.added_indents.remove(&line);
                taken.push(Edit::insert(start, " ".repeat(by)));
            }
        }
        let keys = self.edits.range((span.start, 0)..(span.end, 0)).map(|(key, _)| *key);
        let keys: Vec<(usize, usize)> = keys.collect();
        taken.extend(keys.into_iter().filter_map(|key| self.edits.remove(&key)));
        let mut text = String::new();
        let mut at = span.start;
        for edit in merged(taken) {
            text += self.file.slice(Span::new(at, edit.span.start));
            text += &edit.text;
            at = edit.span.end;
        }
        text + self.file.slice(Span::new(at, span.end))
    }

    pub(crate) fn finish(self) -> Vec<Edit> {
        let start = |line: usize| self.file.line_span(line).map(|span| span.start);
        let moved =
            self.added_indents.iter().filter_map(|(line, by)| Some(Edit::insert(start(*line)?, " ".repeat(*by))));
        let mut edits: Vec<Edit> = moved.collect();
        edits.extend(self.edits.into_values());
        merged(edits)
    }
}

/// The smallest indentation of the lines of a text.
fn margin(file: &SourceFile, text: &LongText) -> usize {
    let lines = (text.first..=text.last).filter_map(|line| file.line_span(line)).map(|span| file.slice(span));
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0)
}

/// Sorts edits by position and joins those at the same position.
fn merged(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| edit.span);
    let mut merged: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        match merged.last_mut() {
            Some(last) if last.span.is_empty() && last.span.start == edit.span.start => {
                last.span = edit.span;
                last.text += &edit.text;
            }
            _ => merged.push(edit),
        }
    }
    merged
}

/// Whether a collection is in flow style.
pub(crate) fn is_flow(file: &SourceFile, node: &YamlNode) -> bool {
    file.slice(node.span).starts_with(['{', '['])
}

/// The last line of an entry.
pub fn last_line(file: &SourceFile, entry: &YamlEntry) -> usize {
    file.line(end(file, entry))
}
