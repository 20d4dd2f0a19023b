//! A template file with its front matter, its names and its mistakes. It is parsed on first use, because a session uses only a few of
//! the templates that it pins.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior};

use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::template::environment::environment;
use crate::template::error::{Mistake, MistakeKind, TemplateError, render_error};
use crate::template::front_matter::{SplitTemplate, split_all};
use crate::template::layers::{TemplateFile, display_name};
use crate::template::limits::{RejectedSyntax, check_limits};
use crate::template::rewrite::rejected_expressions;
use crate::template::roles::PromptRole;
use crate::template::uses::{NameUse, Uses, find};

/// The prefix that skips the scheme's layer in the name of a template: `{% extends "default:ai_ask_v1.md" %}`.
pub const DEFAULT_PREFIX: &str = "default:";

/// The environment with the filters, tests and functions of all files.
static VOCABULARY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(UndefinedBehavior::Strict));

/// A template file.
#[derive(Debug)]
pub struct LoadedTemplate {
    /// Its name in the environment: the place and the file name.
    pub(crate) key: String,
    /// `custom/english`, `builtin/default` …
    place: String,
    /// `ai_ask_v1.md`
    name: String,
    /// Its text, under its display name.
    source: Arc<SourceFile>,
    content: OnceLock<Content>,
    /// Caches of [`Templates`](crate::template::templates::Templates), which depend on other files too.
    pub(crate) mentioned: OnceLock<BTreeMap<String, bool>>,
    pub(crate) problem: OnceLock<Option<TemplateError>>,
    blank: OnceLock<Option<TemplateError>>,
}

/// The parsed content of a file.
#[derive(Debug)]
struct Content {
    cut: SplitTemplate,
    /// The names and templates that it uses; ranges are relative to the template without front matter.
    uses: Uses,
    /// The names of `uses`, with ranges in the file.
    names: Vec<NameUse>,
    mistakes: Vec<TemplateError>,
}

impl LoadedTemplate {
    pub(crate) fn of(file: &TemplateFile) -> Self {
        Self {
            key: format!("{}/{}", file.place, file.name),
            place: file.place.clone(),
            name: file.name.clone(),
            source: Arc::new(SourceFile::new(display_name(&file.place, &file.name), file.text.as_str())),
            content: OnceLock::new(),
            mentioned: OnceLock::new(),
            problem: OnceLock::new(),
            blank: OnceLock::new(),
        }
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| Loader::of(self))
    }

    /// The template without front matter.
    pub(crate) fn body(&self) -> &str {
        self.source.text().get(self.split().body..).unwrap_or_default()
    }

    /// The error of a template without any text for the model. A part that others include may be empty.
    pub fn blank(&self) -> Option<&TemplateError> {
        // Every prompt asks for it.
        self.blank.get_or_init(|| self.find_blank()).as_ref()
    }

    fn find_blank(&self) -> Option<TemplateError> {
        let mut rest = self.body();
        let mut text = String::with_capacity(rest.len());
        while let Some((before, comment)) = rest.split_once("{#") {
            text += before;
            rest = comment.split_once("#}").map_or("", |(_, after)| after);
        }
        text += rest;
        let is_text = |line: &str| !line.trim().is_empty() && PromptRole::from_line(line).is_none();
        if self.source.text().is_empty() || !text.lines().any(is_text) {
            let message = msg!("the template {} is empty, so the model would get no prompt", self.source.name());
            let help = msg!("write the prompt, or delete the file to use the template of the next layer");
            return Some(self.mistake(
                MistakeKind::Empty,
                self.split().body..self.source.text().len(),
                message,
                Some(help),
            ));
        }
        None
    }

    /// The mistakes in the file itself; empty if it can be compiled.
    pub(crate) fn mistakes(&self) -> &[TemplateError] {
        &self.content().mistakes
    }

    /// Converts a range of the template to a range of the file.
    pub(crate) fn range(&self, body: &Range<usize>) -> Range<usize> {
        file_range(self.split(), body)
    }

    /// A mistake at a byte range of the file.
    pub(crate) fn mistake(
        &self,
        kind: MistakeKind,
        range: Range<usize>,
        message: Message,
        help: Option<Message>,
    ) -> TemplateError {
        mistake(&self.source, kind, range, message, help)
    }

    /// A rendering error, at a byte range of the compiled text. That text has sentinels instead of role markers, but the same lines.
    pub(crate) fn error(
        &self,
        compiled: &str,
        range: Option<&Range<usize>>,
        message: Message,
        help: Option<Message>,
    ) -> TemplateError {
        let before = range.and_then(|range| compiled.get(..range.start));
        let lines = self.source.line(self.split().body).saturating_sub(1);
        let last_line = |before: &str| before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        TemplateError {
            message,
            file: Some(self.source.name().to_owned()),
            line: before.map(|before| lines + before.matches('\n').count() + 1),
            column: before.map(last_line),
            help,
            mistake: None,
        }
    }

    /// See [`TemplateFile::place`].
    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text, under its display name.
    pub fn source(&self) -> &Arc<SourceFile> {
        &self.source
    }

    /// Its front matter, as far as it is valid, and the start of the template.
    pub fn split(&self) -> &SplitTemplate {
        &self.content().cut
    }

    /// The names and templates that it uses; ranges are relative to the start of the template.
    pub fn uses(&self) -> &Uses {
        &self.content().uses
    }

    /// The names that it does not set itself, with ranges in the file.
    pub fn names(&self) -> &[NameUse] {
        &self.content().names
    }

    pub fn span(&self, range: &Range<usize>) -> Span {
        self.source.clamp(Span::new(range.start, range.end))
    }
}

/// Parses a file.
struct Loader<'f> {
    file: &'f LoadedTemplate,
    content: Content,
}

impl Loader<'_> {
    fn of(file: &LoadedTemplate) -> Content {
        let (cut, errors) = split_all(file.source.text());
        let content = Content { cut, uses: Uses::default(), names: Vec::new(), mistakes: Vec::new() };
        let mut loader = Loader { file, content };
        for error in errors {
            let found = mistake(&file.source, MistakeKind::FrontMatter, error.range, error.message, error.help);
            // A YAML error may have a line but no column.
            let found = TemplateError { line: Some(error.line), column: None, ..found };
            loader.content.mistakes.push(found.with_instead(error.instead.as_deref()));
        }
        loader.template();
        loader.content
    }

    fn template(&mut self) {
        let body = self.file.source.text().get(self.content.cut.body..).unwrap_or_default();
        if let Err(rejected) = check_limits(body, false) {
            self.rejected(rejected);
            return;
        }
        // A template that can be parsed can also be compiled.
        let tree = match parse(body, &self.file.key, SyntaxConfig::default()) {
            Ok(tree) => tree,
            Err(error) => {
                let error = render_error(&error).within(body);
                self.mistake(MistakeKind::Syntax, &error.range.unwrap_or(0..0), error.message, None);
                return;
            }
        };
        let mut uses = find(&tree, &VOCABULARY);
        let rejected = std::mem::take(&mut uses.rejected).into_iter().chain(rejected_expressions(body));
        rejected.for_each(|rejected| self.rejected(rejected));
        for target in &uses.targets {
            if let Some(name) = target.name.as_deref().filter(|name| is_outside(name)) {
                let help = msg!("put the file next to the templates, and write its name without a folder");
                self.mistake(MistakeKind::OutsideLayers, &target.name_range, outside_message(name), Some(help));
            }
        }
        let cut = &self.content.cut;
        self.content.names =
            uses.names.iter().map(|used| NameUse { range: file_range(cut, &used.range), ..used.clone() }).collect();
        self.content.uses = uses;
    }

    fn rejected(&mut self, rejected: RejectedSyntax) {
        let range = file_range(&self.content.cut, &rejected.range);
        let found = mistake(&self.file.source, MistakeKind::Syntax, range, rejected.message, rejected.help);
        self.content.mistakes.push(found.with_instead(rejected.instead.as_deref()));
    }

    /// Adds a mistake at a byte range of the template.
    fn mistake(&mut self, kind: MistakeKind, range: &Range<usize>, message: Message, help: Option<Message>) {
        let range = file_range(&self.content.cut, range);
        self.content.mistakes.push(mistake(&self.file.source, kind, range, message, help));
    }
}

/// Converts a range of the template to a range of the file.
fn file_range(cut: &SplitTemplate, range: &Range<usize>) -> Range<usize> {
    range.start + cut.body..range.end + cut.body
}

fn mistake(
    source: &SourceFile,
    kind: MistakeKind,
    range: Range<usize>,
    message: Message,
    help: Option<Message>,
) -> TemplateError {
    let (line, column) = source.line_column(range.start);
    TemplateError {
        message,
        file: Some(source.name().to_owned()),
        line: Some(line),
        column: Some(column),
        help,
        mistake: Some(Box::new(Mistake { kind, range, instead: None })),
    }
}

/// Whether a name refers to a file outside the layers.
pub fn is_outside(name: &str) -> bool {
    let name = name.strip_prefix(DEFAULT_PREFIX).unwrap_or(name);
    name.contains(['/', '\\', ':', '\0']) || name.contains("..")
}

/// The message for such a name.
pub(crate) fn outside_message(name: &str) -> Message {
    msg!("`{}` is not a template of this session: templates are referred to by file name only", name.escape_debug())
}
