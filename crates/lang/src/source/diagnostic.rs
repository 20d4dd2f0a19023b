//! A diagnostic of a file, as data: the problem, its position, and what to do. `source::render` adds layout and color.

use crate::message::message::Message;
use crate::message::msg;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::source::span::Span;
use crate::source::text::SourceFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used as it is.
    Error,
    /// Probably not what was meant.
    Warning,
    /// For information only.
    Info,
}

impl Severity {
    /// The name in reports: `error`, `warning`, `info`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Another position that helps to understand a diagnostic: "the first one is here".
#[derive(Clone, Debug)]
pub struct Related {
    pub message: Message,
    /// The file, which may be a different one.
    pub file: Arc<SourceFile>,
    pub span: Span,
}

/// One replacement: `text` replaces `span`. An empty span inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

impl Edit {
    /// Inserts `text` at `byte`.
    pub fn insert(byte: usize, text: impl Into<String>) -> Self {
        Self { span: Span::point(byte), text: text.into() }
    }

    /// Replaces `span` by `text`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// A change to the diagnostic's own file that resolves it. The edits are applied together and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an imperative: "put quotes around the text".
    pub title: Message,
    pub edits: Vec<Edit>,
    /// Whether it may be applied without asking: it cannot change what the file means, or the file cannot be read without it
    /// and only one thing can be meant. `validate --fix` and `migrate` apply only these.
    pub sure: bool,
}

impl Fix {
    /// A fix that a person must review.
    pub fn new(title: impl Into<Message>, edits: Vec<Edit>) -> Self {
        Self { title: title.into(), edits, sure: false }
    }

    /// A fix that may be applied without asking.
    pub fn sure(title: impl Into<Message>, edits: Vec<Edit>) -> Self {
        Self { title: title.into(), edits, sure: true }
    }

    /// The same fix, which stays sure only if `sure` is true.
    pub fn only_sure_if(mut self, sure: bool) -> Self {
        self.sure &= sure;
        self
    }
}

/// A diagnostic. `rule` is a stable slug (`docs/diagnostics/<rule>.md`); messages may change, slugs do not.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub rule: &'static str,
    pub severity: Severity,
    pub message: Message,
    pub help: Option<Message>,
    pub file: Arc<SourceFile>,
    pub span: Span,
    /// Related positions.
    pub related: Vec<Related>,
    /// Fixes, the best one first.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// An error; the span is clamped to the file's text.
    pub fn error(rule: &'static str, message: impl Into<Message>, file: &Arc<SourceFile>, span: Span) -> Self {
        Self::new(Severity::Error, rule, message.into(), file, span)
    }

    /// A warning; the span is clamped to the file's text.
    pub fn warning(rule: &'static str, message: impl Into<Message>, file: &Arc<SourceFile>, span: Span) -> Self {
        Self::new(Severity::Warning, rule, message.into(), file, span)
    }

    /// An info diagnostic; the span is clamped to the file's text.
    pub fn info(rule: &'static str, message: impl Into<Message>, file: &Arc<SourceFile>, span: Span) -> Self {
        Self::new(Severity::Info, rule, message.into(), file, span)
    }

    fn new(severity: Severity, rule: &'static str, message: Message, file: &Arc<SourceFile>, span: Span) -> Self {
        Self {
            rule,
            severity,
            message,
            help: None,
            file: Arc::clone(file),
            span: file.clamp(span),
            related: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// Sets the help, which replaces a previous one.
    pub fn with_help(mut self, help: impl Into<Message>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a related position.
    pub fn with_related(mut self, message: impl Into<Message>, file: &Arc<SourceFile>, span: Span) -> Self {
        self.related.push(Related { message: message.into(), file: Arc::clone(file), span: file.clamp(span) });
        self
    }

    /// Adds these fixes after the existing ones.
    pub fn with_fixes(mut self, fixes: impl IntoIterator<Item = Fix>) -> Self {
        self.fixes.extend(fixes);
        self
    }

    /// Adds a fix that a person must review.
    pub fn with_fix(self, title: impl Into<Message>, edits: Vec<Edit>) -> Self {
        self.with_fixes([Fix::new(title, edits)])
    }

    /// Adds a fix that may be applied without asking ([`Fix::sure`]).
    pub fn with_sure_fix(self, title: impl Into<Message>, edits: Vec<Edit>) -> Self {
        self.with_fixes([Fix::sure(title, edits)])
    }

    /// Adds the fix that replaces the span by `text`, if there is a text. A person must review it: like every "did you mean",
    /// it is a guess.
    pub fn with_replacement(self, text: Option<&str>) -> Self {
        let fix = text.map(|text| self.replacement(text));
        self.with_fixes(fix.map(|fix| fix.only_sure_if(false)))
    }

    /// Suggests `near`, with the fix that writes it; without `near`, sets other help.
    pub fn with_suggestion_or(self, near: Option<&str>, otherwise: impl FnOnce() -> Message) -> Self {
        match near {
            Some(near) => self.with_suggestion(near),
            None => self.with_help(otherwise()),
        }
    }

    /// Suggests `near`, with the fix that writes it.
    pub fn with_suggestion(self, near: &str) -> Self {
        self.with_help(msg!("did you mean `{near}`?")).with_replacement(Some(near))
    }

    /// Adds the fix that replaces the span by `text`, if there is a text. It may be applied without asking.
    pub fn with_sure_replacement(self, text: Option<&str>) -> Self {
        let fix = text.map(|text| self.replacement(text));
        self.with_fixes(fix)
    }

    fn replacement(&self, text: &str) -> Fix {
        Fix::sure(msg!("write `{text}`"), vec![Edit::replace(self.span, text)])
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Sorts diagnostics by file name, then by position; those at the same start begin with errors.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(order);
}

/// The order of [`sort`].
pub fn order(a: &Diagnostic, b: &Diagnostic) -> Ordering {
    let key = |d: &Diagnostic| (d.span.start, d.severity, d.span.end, d.rule);
    a.file.name().cmp(b.file.name()).then_with(|| key(a).cmp(&key(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_by_file_then_position_then_severity() {
        let a = Arc::new(SourceFile::new("a.yaml", "0123456789"));
        let b = Arc::new(SourceFile::new("b.yaml", "0123456789"));
        let mut all = vec![
            Diagnostic::error("four", "", &b, Span::new(0, 1)),
            Diagnostic::error("three", "", &a, Span::new(5, 6)),
            Diagnostic::warning("two", "", &a, Span::new(2, 3)),
            Diagnostic::error("one", "", &a, Span::new(2, 4)),
        ];
        sort(&mut all);
        assert_eq!(all.iter().map(|d| d.rule).collect::<Vec<_>>(), ["one", "two", "three", "four"]);
    }

    #[test]
    fn a_span_outside_the_text_is_clamped() {
        let file = Arc::new(SourceFile::new("a.yaml", "好"));
        let diagnostic = Diagnostic::error("x", "", &file, Span::new(1, 99)).with_related("", &file, Span::new(7, 8));
        assert_eq!(diagnostic.span, Span::new(0, 3));
        assert_eq!(diagnostic.related[0].span, Span::point(3));
    }
}
