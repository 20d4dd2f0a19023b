//! A text while it is being rewritten: replacements, and lines that move to the right.

use crate::message::message::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::script::lines::end;
use crate::source::comments::{LongText, comments};
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{YamlEntry, YamlNode};

/// Where the form of a document cannot be changed surely, and what stands in the way, as the second half of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousRewrite {
    pub span: Span,
    /// "this stands where …".
    pub why: Message,
    /// Other places that have to do with it, and what is to be said of each.
    pub others: Vec<(Span, &'static str)>,
    /// What to do, where that is something else than to write the whole file anew.
    pub help: Option<&'static str>,
}

impl AmbiguousRewrite {
    /// `why`, at `span`.
    pub fn at(span: Span, why: impl Into<Message>) -> Self {
        Self { span, why: why.into(), others: Vec::new(), help: None }
    }

    /// The same with other places, of each of which `what` is said, and with what to do.
    pub fn with(self, others: impl IntoIterator<Item = Span>, what: &'static str, help: &'static str) -> Self {
        Self { others: others.into_iter().map(|span| (span, what)).collect(), help: Some(help), ..self }
    }

    /// Says it in a finding, in which `by_hand` is the help unless this knows better.
    pub fn told_in(self, diagnostic: Diagnostic, file: &Arc<SourceFile>, by_hand: &'static str) -> Diagnostic {
        let diagnostic = diagnostic.with_help(self.help.unwrap_or(by_hand)).with_related(self.why, file, self.span);
        self.others.into_iter().fold(diagnostic, |told, (span, what)| told.with_related(what, file, span))
    }
}

/// The changes of one file, before they are put in order.
pub struct Rewrite<'f> {
    file: &'f SourceFile,
    comments: Vec<Span>,
    /// Texts over several lines, each with the column in which its lines begin.
    texts: Vec<(LongText, usize)>,
    /// By where they begin and, at one place, in the order in which they came.
    edits: BTreeMap<(usize, usize), Edit>,
    /// How many there were.
    made: usize,
    /// How far lines move to the right, in columns.
    deeper: BTreeMap<usize, usize>,
}

impl<'f> Rewrite<'f> {
    /// Of a file that YAML could read.
    pub fn of(file: &'f SourceFile) -> Self {
        let found = comments(file);
        let texts = found.texts.into_iter().map(|text| (text, margin(file, &text))).collect();
        Self { file, comments: found.comments, texts, edits: BTreeMap::new(), made: 0, deeper: BTreeMap::new() }
    }

    pub fn file(&self) -> &'f SourceFile {
        self.file
    }

    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.made += 1;
        self.edits.insert((span.start, self.made), Edit::replace(span, text));
    }

    /// Puts a text at `byte`. Of several at one place, the first stands first.
    pub fn insert(&mut self, byte: usize, text: impl Into<String>) {
        self.replace(Span::point(byte), text);
    }

    /// Gives a key another name, in the quotes that it has.
    pub fn rename(&mut self, key: Span, name: &str) {
        let name = match self.file.slice(key).chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{name}{quote}"),
            _ => name.to_owned(),
        };
        self.replace(key, name);
    }

    /// Moves a line by so many columns more.
    pub fn deepen(&mut self, line: usize, by: usize) {
        *self.deeper.entry(line).or_default() += by;
    }

    /// How far a line moves.
    pub fn deepened(&self, line: usize) -> usize {
        self.deeper.get(&line).copied().unwrap_or(0)
    }

    /// The column of a key in block style, and whether it begins its line. `None` where something other than white space and
    /// the dashes of lists stands before it in its line.
    pub fn column(&self, key: Span) -> Option<(usize, bool)> {
        let line = self.file.line_span(self.file.line(key.start))?;
        let before = self.file.slice(Span::new(line.start, key.start));
        let blank = before.chars().all(|c| c == ' ');
        (blank || before.chars().all(|c| matches!(c, ' ' | '-'))).then_some((before.len(), blank))
    }

    /// Whether the line holds nothing but a comment, and its column.
    pub fn comment_line(&self, line: usize) -> Option<usize> {
        let span = self.file.line_span(line)?;
        let text = self.file.slice(span);
        let column = text.len() - text.trim_start_matches([' ', '\t']).len();
        let begins = span.start + column;
        let is_comment = self.comments.binary_search_by(|comment| comment.start.cmp(&begins)).is_ok();
        is_comment.then_some(column)
    }

    /// Whether nothing stands in the line, as far as YAML is concerned: inside of a text block, spaces beyond its margin are
    /// a part of the text.
    pub fn is_blank(&self, line: usize) -> bool {
        let text = |line| self.file.line_span(line).map_or("", |span| self.file.slice(span));
        let here = text(line);
        if !here.trim().is_empty() {
            return false;
        }
        let begun = self.texts.partition_point(|(long, _)| long.line < line);
        let Some((long, margin)) = begun.checked_sub(1).and_then(|last| self.texts.get(last)) else { return true };
        // Texts do not end in more lines of spaces than these.
        const MOST_LINES: usize = 1_000;
        let near = here.len() > *margin && line.saturating_sub(long.last) < MOST_LINES;
        !(near && (long.last + 1..line).all(|line| text(line).trim().is_empty()))
    }

    /// The text that `span` covers after the changes made so far, which are taken out: it is put elsewhere.
    pub fn take(&mut self, span: Span) -> String {
        let lines = self.file.line(span.start)..=self.file.line(span.end);
        let lines: Vec<(usize, usize)> = self.deeper.range(lines).map(|(line, by)| (*line, *by)).collect();
        let mut taken: Vec<Edit> = Vec::new();
        for (line, by) in lines {
            let start = self.file.line_span(line).map_or(span.end, |at| at.start);
            if span.start <= start && start < span.end {
                self.deeper.remove(&line);
                taken.push(Edit::insert(start, " ".repeat(by)));
            }
        }
        let inside = self.edits.range((span.start, 0)..(span.end, 0)).map(|(key, _)| *key);
        let inside: Vec<(usize, usize)> = inside.collect();
        taken.extend(inside.into_iter().filter_map(|key| self.edits.remove(&key)));
        let mut text = String::new();
        let mut at = span.start;
        for edit in merged(taken) {
            text += self.file.slice(Span::new(at, edit.span.start));
            text += &edit.text;
            at = edit.span.end;
        }
        text + self.file.slice(Span::new(at, span.end))
    }

    pub fn finish(self) -> Vec<Edit> {
        let start = |line: usize| self.file.line_span(line).map(|span| span.start);
        let moved = self.deeper.iter().filter_map(|(line, by)| Some(Edit::insert(start(*line)?, " ".repeat(*by))));
        let mut edits: Vec<Edit> = moved.collect();
        edits.extend(self.edits.into_values());
        merged(edits)
    }
}

/// The column of the line of a text that begins farthest to the left.
fn margin(file: &SourceFile, text: &LongText) -> usize {
    let lines = (text.first..=text.last).filter_map(|line| file.line_span(line)).map(|span| file.slice(span));
    let lines = lines.filter(|line| !line.trim().is_empty());
    lines.map(|line| line.len() - line.trim_start_matches(' ').len()).min().unwrap_or(0)
}

/// Edits in the order of the file; what several put at one place becomes one text.
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

/// Whether a collection is written with brackets.
pub fn is_flow(file: &SourceFile, node: &YamlNode) -> bool {
    file.slice(node.span).starts_with(['{', '['])
}

/// The line in which an entry ends.
pub fn last_line(file: &SourceFile, entry: &YamlEntry) -> usize {
    file.line(end(file, entry))
}
