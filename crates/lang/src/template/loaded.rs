//! A template file: its front matter, its tree, and every mistake that stands in it, read when somebody first asks.
//! A session needs a few of the templates that it is pinned to.

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
use crate::template::error::{Mistake, MistakeKind, TemplateError, fault};
use crate::template::front_matter::{SplitTemplate, cut_all};
use crate::template::layers::{TemplateFile, shown};
use crate::template::limits::{YamlSyntaxError, admit};
use crate::template::uses::{NameUse, Uses, find};

/// What skips the scheme's layer in the name of a template: `{% extends "default:ai_ask_v1.md" %}`.
pub const DEFAULT_PREFIX: &str = "default:";

/// The filters, tests and functions that a file may name; the same for all.
static VOCABULARY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(UndefinedBehavior::Strict));

/// A template file.
#[derive(Debug)]
pub struct LoadedTemplate {
    /// What the environment calls it: its place and its name.
    pub(crate) key: String,
    /// `custom/english`, `builtin/default` …
    place: String,
    /// `ai_ask_v1.md`
    name: String,
    /// Its text, under the name that people are shown.
    source: Arc<SourceFile>,
    content: OnceLock<Content>,
    /// What [`TemplatesCommand`](crate::template::templates::Templates) finds out about it and about what it names.
    pub(crate) mentioned: OnceLock<BTreeMap<String, bool>>,
    pub(crate) problem: OnceLock<Option<TemplateError>>,
}

/// What stands in a file.
#[derive(Debug)]
struct Content {
    /// Its front matter, and where the template begins.
    cut: SplitTemplate,
    /// What it uses; its ranges are those of the template without the front matter.
    uses: Uses,
    /// The names of `uses`, with their places in the whole file.
    names: Vec<NameUse>,
    mistakes: Vec<TemplateError>,
}

impl LoadedTemplate {
    pub(crate) fn of(file: &TemplateFile) -> Self {
        Self {
            key: format!("{}/{}", file.place, file.name),
            place: file.place.clone(),
            name: file.name.clone(),
            source: Arc::new(SourceFile::new(shown(&file.place, &file.name), file.text.as_str())),
            content: OnceLock::new(),
            mentioned: OnceLock::new(),
            problem: OnceLock::new(),
        }
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| Reading::of(self))
    }

    /// The template without its front matter.
    pub(crate) fn body(&self) -> &str {
        self.source.text().get(self.cut().body..).unwrap_or_default()
    }

    /// Every mistake that stands in the file itself; none when it can be compiled.
    pub(crate) fn mistakes(&self) -> &[TemplateError] {
        &self.content().mistakes
    }

    /// A range of the template as one of the whole file.
    pub(crate) fn range(&self, body: &Range<usize>) -> Range<usize> {
        whole(self.cut(), body)
    }

    /// A mistake at bytes of the whole file.
    pub(crate) fn mistake(
        &self,
        kind: MistakeKind,
        range: Range<usize>,
        message: Message,
        help: Option<Message>,
    ) -> TemplateError {
        mistake(&self.source, kind, range, message, help)
    }

    /// An error while the template was rendered, at a byte range of what was compiled: its role markers are sentinels there,
    /// but its lines are those of the file.
    pub(crate) fn error(
        &self,
        compiled: &str,
        range: Option<&Range<usize>>,
        message: Message,
        help: Option<Message>,
    ) -> TemplateError {
        let before = range.and_then(|range| compiled.get(..range.start));
        let lines = self.source.line(self.cut().body).saturating_sub(1);
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

    /// Where it lies: [`TemplateFile::place`].
    pub fn place(&self) -> &str {
        &self.place
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text, under the name that people are shown.
    pub fn source(&self) -> &Arc<SourceFile> {
        &self.source
    }

    /// Its front matter as far as it could be read, and where the template begins.
    pub fn cut(&self) -> &SplitTemplate {
        &self.content().cut
    }

    /// What it uses; ranges count from where the template begins.
    pub fn uses(&self) -> &Uses {
        &self.content().uses
    }

    /// The names that it does not set itself, with their places in the whole file.
    pub fn names(&self) -> &[NameUse] {
        &self.content().names
    }

    pub fn span(&self, range: &Range<usize>) -> Span {
        self.source.clamp(Span::new(range.start, range.end))
    }
}

/// A file while it is read.
struct Reading<'f> {
    file: &'f LoadedTemplate,
    content: Content,
}

impl Reading<'_> {
    fn of(file: &LoadedTemplate) -> Content {
        let (cut, front) = cut_all(file.source.text());
        let content = Content { cut, uses: Uses::default(), names: Vec::new(), mistakes: Vec::new() };
        let mut reading = Reading { file, content };
        for fault in front {
            let told = mistake(&file.source, MistakeKind::Front, fault.range, fault.message, fault.help);
            // A fault of YAML may have a line and no column.
            let told = TemplateError { line: Some(fault.line), column: None, ..told };
            reading.content.mistakes.push(told.with_instead(fault.instead.as_deref()));
        }
        reading.template();
        reading.content
    }

    fn template(&mut self) {
        let body = self.file.source.text().get(self.content.cut.body..).unwrap_or_default();
        if let Err(refused) = admit(body, false) {
            self.refused(refused);
            return;
        }
        // What can be parsed can be compiled too.
        let tree = match parse(body, &self.file.key, SyntaxConfig::default()) {
            Ok(tree) => tree,
            Err(error) => {
                let fault = fault(&error).within(body);
                self.mistake(MistakeKind::Syntax, &fault.range.unwrap_or(0..0), fault.message, None);
                return;
            }
        };
        let mut uses = find(&tree, &VOCABULARY);
        std::mem::take(&mut uses.refused).into_iter().for_each(|refused| self.refused(refused));
        for target in &uses.targets {
            if let Some(name) = target.name.as_deref().filter(|name| is_outside(name)) {
                let help = msg!("put the file next to the templates, and write its name without a folder");
                self.mistake(MistakeKind::Outside, &target.named, outside(name), Some(help));
            }
        }
        let cut = &self.content.cut;
        self.content.names =
            uses.names.iter().map(|used| NameUse { range: whole(cut, &used.range), ..used.clone() }).collect();
        self.content.uses = uses;
    }

    fn refused(&mut self, refused: YamlSyntaxError) {
        let range = whole(&self.content.cut, &refused.range);
        let told = mistake(&self.file.source, MistakeKind::Syntax, range, refused.message, refused.help);
        self.content.mistakes.push(told.with_instead(refused.instead.as_deref()));
    }

    /// Notes a mistake at bytes of the template.
    fn mistake(&mut self, kind: MistakeKind, range: &Range<usize>, message: Message, help: Option<Message>) {
        let range = whole(&self.content.cut, range);
        self.content.mistakes.push(mistake(&self.file.source, kind, range, message, help));
    }
}

/// A range of the template as one of the whole file.
fn whole(cut: &SplitTemplate, range: &Range<usize>) -> Range<usize> {
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

/// Whether a name leads out of the layers.
pub fn is_outside(name: &str) -> bool {
    let name = name.strip_prefix(DEFAULT_PREFIX).unwrap_or(name);
    name.contains(['/', '\\', ':', '\0']) || name.contains("..")
}

/// What is told of such a name.
pub(crate) fn outside(name: &str) -> Message {
    msg!("`{}` is not a template of this session: templates are referred to by file name only", name.escape_debug())
}
