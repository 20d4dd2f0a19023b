//! A template file that was read: its front matter, its tree, and every mistake that stands in it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::template::fault::{Mistake, MistakeKind, TemplateError, fault};
use crate::template::front::{Cut, cut_all};
use crate::template::guard::{Refused, admit};
use crate::template::layers::{TemplateFile, shown};
use crate::template::roles::Sentinels;
use crate::template::uses::{NameUse, Uses, find};

/// What skips the scheme's layer in the name of a template: `{% extends "default:ai_ask_v1.md" %}`.
pub const DEFAULT_PREFIX: &str = "default:";

/// A file that was read.
#[derive(Debug)]
pub struct Loaded {
    /// What the environment calls it: its place and its name.
    pub(crate) key: String,
    /// `custom/english`, `builtin/default` …
    pub(crate) place: String,
    /// `ai_ask_v1.md`
    pub(crate) name: String,
    /// Its text, under the name that people are shown.
    pub(crate) source: Arc<SourceFile>,
    /// Its front matter, and where the template begins.
    pub(crate) cut: Cut,
    /// What it uses; its ranges are those of the template without the front matter.
    pub(crate) uses: Uses,
    /// The names of `uses`, with their places in the whole file.
    pub(crate) names: Vec<NameUse>,
    pub(crate) mentioned: BTreeMap<String, bool>,
    pub(crate) mistakes: Vec<TemplateError>,
    /// The first thing that is wrong in the file or in one that it names.
    pub(crate) problem: Option<TemplateError>,
}

impl Loaded {
    /// Reads a file and adds it to the environment when nothing is wrong in it.
    pub(crate) fn of(file: &TemplateFile, environment: &mut Environment<'static>, sentinels: &Sentinels) -> Self {
        let (cut, front) = cut_all(&file.text);
        let mut loaded = Self {
            key: format!("{}/{}", file.place, file.name),
            place: file.place.clone(),
            name: file.name.clone(),
            source: Arc::new(SourceFile::new(shown(&file.place, &file.name), file.text.as_str())),
            cut,
            uses: Uses::default(),
            names: Vec::new(),
            mentioned: BTreeMap::new(),
            mistakes: Vec::new(),
            problem: None,
        };
        for fault in front {
            let told = loaded.mistake(MistakeKind::Front, fault.range, fault.message, fault.help);
            // A fault of YAML may have a line and no column.
            let told = TemplateError { line: Some(fault.line), column: None, ..told };
            loaded.mistakes.push(told.with_instead(fault.instead.as_deref()));
        }
        loaded.read(environment, sentinels);
        loaded.problem = loaded.mistakes.first().cloned();
        loaded
    }

    fn read(&mut self, environment: &mut Environment<'static>, sentinels: &Sentinels) {
        let source = Arc::clone(&self.source);
        let body = source.text().get(self.cut.body..).unwrap_or_default();
        if let Err(refused) = admit(body, false) {
            self.refused(refused);
            return;
        }
        let tree = match parse(body, &self.key, SyntaxConfig::default()) {
            Ok(tree) => tree,
            Err(error) => {
                self.unreadable(&error, body);
                return;
            }
        };
        let mut uses = find(&tree, environment);
        std::mem::take(&mut uses.refused).into_iter().for_each(|refused| self.refused(refused));
        for target in &uses.targets {
            if let Some(name) = target.name.as_deref().filter(|name| is_outside(name)) {
                let help = "put the file beside the templates, and write its name without a folder".to_owned();
                let range = self.range(&target.named);
                let told = self.mistake(MistakeKind::Outside, range, outside(name), Some(help));
                self.mistakes.push(told);
            }
        }
        self.names = uses.names.iter().map(|used| NameUse { range: self.range(&used.range), ..used.clone() }).collect();
        self.uses = uses;
        if self.mistakes.is_empty()
            && environment.add_template_owned(self.key.clone(), sentinels.place(body)).is_err()
            // Once more without the sentinels, so that the place is that of the file.
            && let Err(error) = environment.add_template_owned(self.key.clone(), body.to_owned())
        {
            self.unreadable(&error, body);
        }
    }

    fn refused(&mut self, refused: Refused) {
        let told = self.mistake(MistakeKind::Syntax, self.range(&refused.range), refused.message, refused.help);
        self.mistakes.push(told.with_instead(refused.instead.as_deref()));
    }

    fn unreadable(&mut self, error: &minijinja::Error, body: &str) {
        let fault = fault(error).within(body);
        let range = fault.range.as_ref().map_or(self.cut.body..self.cut.body, |range| self.range(range));
        let told = self.mistake(MistakeKind::Syntax, range, fault.message, None);
        self.mistakes.push(told);
    }

    /// A range of the template as one of the whole file.
    pub(crate) fn range(&self, body: &Range<usize>) -> Range<usize> {
        body.start + self.cut.body..body.end + self.cut.body
    }

    /// A mistake at bytes of the whole file.
    pub(crate) fn mistake(
        &self,
        kind: MistakeKind,
        range: Range<usize>,
        message: String,
        help: Option<String>,
    ) -> TemplateError {
        let (line, column) = self.source.line_column(range.start);
        TemplateError {
            message,
            file: Some(self.source.name().to_owned()),
            line: Some(line),
            column: Some(column),
            help,
            mistake: Some(Box::new(Mistake { kind, range, instead: None })),
        }
    }

    /// An error while the template was rendered, at a byte range of what was compiled: its role markers are sentinels there,
    /// but its lines are those of the file.
    pub(crate) fn error(
        &self,
        compiled: &str,
        range: Option<&Range<usize>>,
        message: String,
        help: Option<String>,
    ) -> TemplateError {
        let before = range.and_then(|range| compiled.get(..range.start));
        let lines = self.source.line(self.cut.body).saturating_sub(1);
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
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// What it uses; ranges count from where the template begins.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// The names that it does not set itself, with their places in the whole file.
    pub fn names(&self) -> &[NameUse] {
        &self.names
    }

    pub fn span(&self, range: &Range<usize>) -> Span {
        self.source.clamp(Span::new(range.start, range.end))
    }
}

/// Whether a name leads out of the layers.
pub fn is_outside(name: &str) -> bool {
    let name = name.strip_prefix(DEFAULT_PREFIX).unwrap_or(name);
    name.contains(['/', '\\', ':', '\0']) || name.contains("..")
}

/// What is told of such a name.
pub(crate) fn outside(name: &str) -> String {
    format!("`{}` is not a template of this session: templates are named by their file alone", name.escape_debug())
}
