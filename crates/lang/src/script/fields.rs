//! Typed reading of one mapping: each field is asked for by name, and what nobody asked for is an unknown key.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::source::misreading::full_width_colon_help;
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::script::examples::example;
use crate::script::findings::Findings;
use crate::script::legacy_fields::todays_spelling;
use crate::script::lines::{removal, renamed};
use crate::script::numbers::whole_number;
use crate::script::other_names::other_name_of;
use crate::source::diagnostic::Diagnostic;
use crate::source::misreading::help_for;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// A scalar that an author wrote as text, with the node it came from so that places inside it can be marked.
#[derive(Clone, Debug)]
pub struct TextField {
    pub text: String,
    pub node: Arc<YamlNode>,
}

/// One mapping while it is being read.
pub struct Fields<'a> {
    pub(super) file: &'a Arc<SourceFile>,
    pub(super) findings: &'a Findings,
    pub(super) what: Message,
    span: Span,
    pub(super) entries: &'a [YamlEntry],
    /// The entries whose keys are older spellings, with today's: most mappings have none.
    older: Vec<(usize, String)>,
    pub(super) used: Vec<Cell<bool>>,
    pub(super) asked: RefCell<Vec<&'static str>>,
    /// What is read from those that were asked for, where that is known.
    pub(super) shapes: RefCell<Vec<(&'static str, FieldShape)>>,
    /// Required fields that are not there, each with the report. A misspelt one is reported once, as an unknown key.
    pub(super) missing: RefCell<Vec<(Vec<&'static str>, Diagnostic)>>,
    /// Keys that stand beside this mapping instead of in it, where they are reported.
    beside: &'a [String],
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which messages call `what`. Reports `wrong-type` and gives `None` when it is no mapping.
    pub fn of(
        node: &'a YamlNode,
        what: impl Into<Message>,
        file: &'a Arc<SourceFile>,
        findings: &'a Findings,
    ) -> Option<Self> {
        let what = what.into();
        match &node.kind {
            NodeKind::Mapping(entries) => Some(Self::over(entries, node.span, what, file, findings)),
            _ => {
                let message = msg!("{what} must be a mapping of fields, but this is {}", node.describe());
                let help = help_for(file, node)
                    .unwrap_or_else(|| msg!("write each field on a line of its own, as `name: value`"));
                findings.report(Diagnostic::error("wrong-type", message, file, node.span).with_help(help));
                None
            }
        }
    }

    /// The fields of a mapping that is not written at all: every required one will be reported at `span`.
    pub fn none(span: Span, what: impl Into<Message>, file: &'a Arc<SourceFile>, findings: &'a Findings) -> Self {
        Self::over(&[], span, what.into(), file, findings)
    }

    fn over(
        entries: &'a [YamlEntry],
        span: Span,
        what: Message,
        file: &'a Arc<SourceFile>,
        findings: &'a Findings,
    ) -> Self {
        let used = entries.iter().map(|_| Cell::new(false)).collect();
        let today = |(index, entry): (usize, &YamlEntry)| Some((index, todays_spelling(&entry.key.value)?));
        let older = entries.iter().enumerate().filter_map(today).collect();
        let (asked, missing) = (RefCell::default(), RefCell::default());
        let shapes = RefCell::default();
        Self { file, findings, what, span, entries, older, used, asked, shapes, missing, beside: &[] }
    }

    /// The same, with keys that were found beside this mapping: what one of them is meant to be is not reported as missing.
    pub fn with_beside(mut self, keys: &'a [String]) -> Self {
        self.beside = keys;
        self
    }

    pub fn file(&self) -> &'a Arc<SourceFile> {
        self.file
    }

    pub fn findings(&self) -> &'a Findings {
        self.findings
    }

    pub fn span(&self) -> Span {
        self.span
    }

    pub fn entries(&self) -> &'a [YamlEntry] {
        self.entries
    }

    pub fn what(&self) -> &Message {
        &self.what
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes a key that is no field of this mapping, so that the caller can say more of it than that it is unknown.
    pub fn stray(&self, key: &str) -> Option<&'a YamlEntry> {
        let (entry, used) = self.entries.iter().zip(&self.used).find(|(entry, _)| entry.key.value == key)?;
        used.set(true);
        Some(entry)
    }

    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.value == key)
    }

    /// Reports that one of `names` must be there, unless an unknown key turns out to be meant as one of them.
    pub fn lacks(&self, names: &[&'static str], diagnostic: Diagnostic) {
        self.missing.borrow_mut().push((names.to_vec(), diagnostic));
    }

    pub fn take(&self, name: &'static str) -> Option<&'a Arc<YamlNode>> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The whole entry of `name`: key and value.
    pub fn entry(&self, name: &'static str) -> Option<&'a YamlEntry> {
        self.asked.borrow_mut().push(name);
        let spelt = |entry: &YamlEntry| entry.key.value == name;
        let mut spellings = self.older.iter().filter(|(_, today)| today == name).peekable();
        if spellings.peek().is_none() {
            // A mapping has each key once.
            let (entry, used) = self.entries.iter().zip(&self.used).find(|(entry, _)| spelt(entry))?;
            used.set(true);
            return Some(entry);
        }
        let older: Vec<usize> = spellings.map(|(index, _)| *index).collect();
        let mut found: Vec<&'a YamlEntry> = Vec::new();
        let mut asked_before = false;
        for (index, (entry, used)) in self.entries.iter().zip(&self.used).enumerate() {
            if spelt(entry) || older.contains(&index) {
                asked_before |= used.replace(true);
                found.push(entry);
            }
        }
        let kept = found.iter().copied().find(|entry| spelt(entry)).or(found.first().copied())?;
        // Renaming one of several would only make a key that stands twice.
        match found.as_slice() {
            _ if asked_before => {}
            [only] if !spelt(only) => self.warn_older(only, name),
            _ => found
                .iter()
                .filter(|other| !std::ptr::eq(**other, kept))
                .for_each(|other| self.again(kept, other, name)),
        }
        Some(kept)
    }

    fn again(&self, kept: &YamlEntry, other: &YamlEntry, name: &str) {
        if kept.value.to_json() == other.value.to_json() {
            let message = msg!("`{}` repeats `{name}` with the same value", other.key.value);
            let diagnostic = Diagnostic::warning("deprecated-field", message, self.file, other.key.span);
            let mut diagnostic = diagnostic.with_help("remove it");
            if let Some(edit) = removal(self.file, self.span, other) {
                diagnostic = diagnostic.with_sure_fix("remove it", vec![edit]);
            }
            self.findings.report(diagnostic.with_related("it is already given here", self.file, kept.key.span));
            return;
        }
        let message =
            msg!("`{}` and `{}` both mean `{name}`, but have different values", kept.key.value, other.key.value);
        let diagnostic = Diagnostic::error("conflicting-spellings", message, self.file, other.key.span);
        let diagnostic = diagnostic.with_help(msg!("keep the one you want, under the name `{name}`"));
        self.findings.report(diagnostic.with_related("the other one", self.file, kept.key.span));
    }

    fn warn_older(&self, entry: &YamlEntry, name: &str) {
        let message = msg!("`{}` is a deprecated name for `{name}`", entry.key.value);
        self.findings.report(
            Diagnostic::warning("deprecated-field", message, self.file, entry.key.span)
                .with_help(msg!("write `{name}`"))
                .with_sure_fix(msg!("rename to `{name}`"), vec![renamed(self.file, &entry.key, name)]),
        );
    }

    /// Remembers what is read from `name`.
    fn expect(&self, name: &'static str, shape: FieldShape) {
        self.shapes.borrow_mut().push((name, shape));
    }

    /// The value of `name`; reports `missing-key` without one. A null counts as missing.
    pub fn required(&self, name: &'static str) -> Option<&'a Arc<YamlNode>> {
        let entry = self.entry(name);
        let value = entry.map(|entry| &entry.value).filter(|node| !is_null(node));
        if value.is_none() {
            let (message, span) = match entry {
                Some(entry) => (msg!("`{name}` of {} is empty", self.what), entry.key.span),
                // The first key is a better place than a mapping of many lines.
                None => (
                    msg!("{} needs `{name}`", self.what),
                    self.entries.first().map_or(self.span, |entry| entry.key.span),
                ),
            };
            let diagnostic = Diagnostic::error("missing-key", message, self.file, span);
            let help = match example(name) {
                Some(example) => Message::word(example),
                None => msg!("add `{name}: …`, aligned with the other fields"),
            };
            self.lacks(&[name], diagnostic.with_help(help));
        }
        value
    }

    /// A text; numbers and booleans count as the text they are written as. Lists, mappings and null are `wrong-type`.
    pub fn words(&self, name: &'static str) -> Option<TextField> {
        self.expect(name, FieldShape::Text);
        self.take(name).and_then(|node| self.as_words(name, node))
    }

    /// A text that must be there.
    pub fn required_words(&self, name: &'static str) -> Option<TextField> {
        self.expect(name, FieldShape::Text);
        self.required(name).and_then(|node| self.as_words(name, node))
    }

    fn as_words(&self, name: &str, node: &Arc<YamlNode>) -> Option<TextField> {
        match node.as_scalar() {
            Some(scalar) if !is_null(node) => Some(TextField { text: scalar.text.clone(), node: Arc::clone(node) }),
            _ => {
                let mut diagnostic = self.wrong_type(name, "text".into(), node);
                let list = matches!(node.kind, NodeKind::Sequence(_));
                let one =
                    || list.then(|| msg!("write it as a single string, as in `{name}: …`, without brackets or dashes"));
                if let Some(help) = help_for(self.file, node).or_else(one) {
                    diagnostic = diagnostic.with_help(help);
                }
                self.findings.report(diagnostic);
                None
            }
        }
    }

    /// A name or id: text with its place.
    pub fn name(&self, name: &'static str) -> Option<Spanned<String>> {
        self.words(name).map(|words| Spanned { value: words.text, span: words.node.span })
    }

    pub fn boolean(&self, name: &'static str) -> Option<bool> {
        self.expect(name, FieldShape::Truth);
        let node = self.take(name)?;
        match node.to_json().as_bool() {
            Some(truth) => Some(truth),
            None => {
                let text = node.as_scalar().map(|scalar| scalar.text.to_ascii_lowercase()).unwrap_or_default();
                let meant = match text.as_str() {
                    "yes" | "on" | "y" | "true" | "是" => Some("true"),
                    "no" | "off" | "n" | "false" | "否" => Some("false"),
                    _ => None,
                };
                let diagnostic = self.wrong_type(name, "`true` or `false`".into(), node);
                let diagnostic = diagnostic.with_help("write `true` or `false`, without quotes");
                self.findings.report(diagnostic.with_sure_replacement(meant));
                None
            }
        }
    }

    pub fn integer(&self, name: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        self.expect(name, FieldShape::Number);
        let node = self.take(name)?;
        let number = node.to_json();
        let whole = number.as_u64().and_then(|n| u32::try_from(n).ok());
        match whole {
            Some(n) if range.contains(&n) => Some(n),
            _ if number.is_number() => {
                let message = msg!("`{name}` must be {}", whole_number(&range, number.as_u64()));
                let help = "use a number in that range, or omit the field";
                self.error("out-of-range", message, node.span, help);
                None
            }
            _ => {
                let digits = node.as_scalar().map(|scalar| scalar.text.trim());
                let digits = digits.filter(|digits| digits.parse::<u32>().is_ok_and(|number| range.contains(&number)));
                let help = if digits.is_some() { "remove the quotes" } else { "write it in digits" };
                let diagnostic = self.wrong_type(name, whole_number(&range, None), node).with_help(help);
                self.findings.report(diagnostic.with_sure_replacement(digits));
                None
            }
        }
    }

    /// One of a few words. `true` and `false` are read as `on` and `off` where these are choices, as YAML 1.1 had it.
    pub fn choice(&self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        self.expect(name, FieldShape::Text);
        let node = self.take(name)?;
        let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
        let text = match text {
            "true" if choices.contains(&"on") => "on",
            "false" if choices.contains(&"off") => "off",
            other => other,
        };
        let choice = choices.iter().copied().find(|choice| *choice == text);
        if choice.is_none() {
            let otherwise = "write one of these exactly as shown, or omit the field";
            self.not_a_choice(name, text, choices, node.span, otherwise);
        }
        choice
    }

    pub fn list(&self, name: &'static str) -> Option<&'a [Arc<YamlNode>]> {
        self.expect(name, FieldShape::List);
        let node = self.take(name)?;
        match &node.kind {
            NodeKind::Sequence(items) => Some(items),
            _ => {
                let help = example(name).unwrap_or("start each item on its own line, with `- `");
                self.wrong(name, "a list", node, help);
                None
            }
        }
    }

    /// The items of a list that must be there and must not be empty.
    pub fn required_list(&self, name: &'static str) -> Option<&'a [Arc<YamlNode>]> {
        self.expect(name, FieldShape::List);
        let node = self.required(name)?;
        let items = self.list(name)?;
        if items.is_empty() {
            let message = msg!("`{name}` of {} is empty", self.what);
            let help = "add at least one item, or remove the part that contains it";
            self.error("empty-list", message, node.span, help);
            return None;
        }
        Some(items)
    }

    /// Reports an item of the list `name` that is a text where a mapping with this text under `key` is meant.
    pub fn name_alone(&self, name: &str, key: &str, text: &str, span: Span) {
        let message = msg!("an item of `{name}` must be a mapping of fields, but this is only a name");
        let help = match text.contains('：') {
            true => full_width_colon_help(),
            false => msg!("write `- {key}: {}`", shortened(text)),
        };
        let diagnostic = Diagnostic::error("wrong-type", message, self.file, span).with_help(help);
        // Inside of `[ ]` a mapping needs braces, and everywhere else they do no harm.
        let item = format!("{{ {key}: {} }}", self.file.slice(span));
        // What runs several fields together is no name of anything.
        let runs_on = text.contains([':', '：', '\n']);
        let item = Some(item.as_str()).filter(|_| !span.is_empty() && !runs_on);
        let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
        let diagnostic =
            if is_name { diagnostic.with_sure_replacement(item) } else { diagnostic.with_replacement(item) };
        self.findings.report(diagnostic);
    }

    /// Marks `name` as known without reading it.
    pub fn ignore(&self, name: &'static str) {
        let _ = self.take(name);
    }

    /// Reports every key that nobody asked for. Keys that begin with `x-` are the author's own.
    pub fn finish(self) {
        self.finish_with(|_| None);
    }

    /// The fields of a node below this one.
    pub fn inner<'n>(&self, node: &'n YamlNode, what: impl Into<Message>) -> Option<Fields<'n>>
    where
        'a: 'n,
    {
        Fields::of(node, what, self.file, self.findings)
    }

    /// Reports an error and what to do about it.
    pub fn error(&self, rule: &'static str, message: impl Into<Message>, span: Span, help: impl Into<Message>) {
        self.findings.report(Diagnostic::error(rule, message, self.file, span).with_help(help));
    }

    /// Reports `wrong-type` of the field `name` and what to do about it.
    pub(crate) fn wrong(&self, name: &str, expected: impl Into<Message>, node: &YamlNode, help: impl Into<Message>) {
        self.findings.report(self.wrong_type(name, expected.into(), node).with_help(help));
    }

    /// Reports that `text`, which is written at `span`, is none of the `choices` that `name` has; `otherwise` says what to do
    /// where it is like none of them.
    pub(crate) fn not_a_choice(
        &self,
        name: &str,
        text: &str,
        choices: &[&str],
        span: Span,
        otherwise: impl Into<Message>,
    ) {
        let listed = choices.iter().map(|choice| Message::text(format!("`{choice}`")));
        let message = msg!("`{name}` must be one of {listed}", listed = Message::list(Joint::Item, listed));
        let near = near_miss(text, choices.iter().copied());
        let diagnostic = Diagnostic::error("not-a-choice", message, self.file, span);
        self.findings.report(diagnostic.with_near(near, || otherwise.into()));
    }

    /// `wrong-type` of the field `name`, not reported yet.
    pub(crate) fn wrong_type(&self, name: &str, expected: Message, node: &YamlNode) -> Diagnostic {
        let message = msg!("`{name}` must be {expected}, but this is {}", node.describe());
        Diagnostic::error("wrong-type", message, self.file, node.span)
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        let beside = |names: &[&str]| {
            let mut meant =
                self.beside.iter().flat_map(|key| [key.as_str()].into_iter().chain(other_name_of(key).iter().copied()));
            meant.any(|field| names.contains(&field))
        };
        let missing = self.missing.take().into_iter().filter(|(names, _)| !beside(names));
        self.findings.extend(missing.map(|(_, diagnostic)| diagnostic));
    }
}

/// What is read from a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldShape {
    Text,
    Truth,
    Number,
    List,
}

impl FieldShape {
    pub(super) fn fits(self, node: &YamlNode) -> bool {
        match (self, &node.kind) {
            (Self::List, NodeKind::Sequence(_)) => true,
            (Self::Text, NodeKind::Scalar(_)) => !is_null(node),
            (Self::Truth, NodeKind::Scalar(scalar)) => scalar.value().is_boolean(),
            (Self::Number, NodeKind::Scalar(scalar)) => scalar.value().is_u64(),
            _ => false,
        }
    }
}

/// Whether the node is a null, written or left empty.
pub fn is_null(node: &YamlNode) -> bool {
    node.as_scalar().is_some_and(|scalar| scalar.value().is_null())
}

/// A name cut to a length that a message can hold.
pub fn shortened(name: &str) -> String {
    const LONGEST: usize = 60;
    if name.chars().count() <= LONGEST {
        return name.to_owned();
    }
    name.chars().take(LONGEST).chain(['…']).collect()
}
