//! Typed reading of a mapping: fields are requested by name, and keys that were never requested are unknown.

use crate::message::message::Joint;
use crate::message::message::Message;
use crate::message::msg;
use crate::source::misreading::{fix_for, fix_full_width_colons, full_width_colon_help, help_for};
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::script::examples::example;
use crate::script::field_shape::{FieldShape, boolean_of_word};
use crate::script::findings::Findings;
use crate::script::inline_list::inline_list;
use crate::script::legacy_fields::current_spelling;
use crate::script::lines::{removal, renamed};
use crate::script::numbers::whole_number;
use crate::script::other_names::other_name_of;
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// A scalar read as text, with its node, so that positions inside it can be marked.
#[derive(Clone, Debug)]
pub struct TextField {
    pub text: String,
    pub node: Arc<YamlNode>,
}

/// One mapping while it is being read.
pub struct Fields<'a> {
    pub(super) file: &'a Arc<SourceFile>,
    pub(super) findings: &'a Findings,
    pub(super) subject: Message,
    span: Span,
    pub(super) entries: &'a [YamlEntry],
    /// Indexes of entries with legacy keys, each with the current spelling. Most mappings have none.
    pub(super) legacy: Vec<(usize, String)>,
    pub(super) used: Vec<Cell<bool>>,
    pub(super) requested: RefCell<Vec<&'static str>>,
    /// The types expected of requested fields, where they are known.
    pub(super) shapes: RefCell<Vec<(&'static str, FieldShape)>>,
    /// Missing required fields, each with its diagnostic. A misspelled one is reported once, as an unknown key.
    pub(super) missing: RefCell<Vec<(Vec<&'static str>, Diagnostic)>>,
    /// Keys next to this mapping instead of in it; they are reported there.
    sibling_keys: &'a [String],
}

impl<'a> Fields<'a> {
    /// The fields of `node`, called `what` in messages. Reports `wrong-type` and returns `None` if it is not a mapping.
    pub fn of(
        node: &'a YamlNode,
        what: impl Into<Message>,
        file: &'a Arc<SourceFile>,
        findings: &'a Findings,
    ) -> Option<Self> {
        let what = what.into();
        match &node.kind {
            NodeKind::Mapping(entries) => Some(Self::from_entries(entries, node.span, what, file, findings)),
            _ => {
                let message = msg!("{what} must be a mapping of fields, but this is {}", node.describe());
                let help = help_for(file, node)
                    .unwrap_or_else(|| msg!("write each field on a line of its own, as `name: value`"));
                let diagnostic = Diagnostic::error("wrong-type", message, file, node.span).with_help(help);
                findings.report(diagnostic.with_fixes(fix_for(file, node)));
                None
            }
        }
    }

    /// The fields of an absent mapping: every required field is reported at `span`.
    pub fn absent(span: Span, what: impl Into<Message>, file: &'a Arc<SourceFile>, findings: &'a Findings) -> Self {
        Self::from_entries(&[], span, what.into(), file, findings)
    }

    fn from_entries(
        entries: &'a [YamlEntry],
        span: Span,
        what: Message,
        file: &'a Arc<SourceFile>,
        findings: &'a Findings,
    ) -> Self {
        let used = entries.iter().map(|_| Cell::new(false)).collect();
        let legacy_entry = |(index, entry): (usize, &YamlEntry)| Some((index, current_spelling(&entry.key.value)?));
        let legacy = entries.iter().enumerate().filter_map(legacy_entry).collect();
        let (requested, missing) = (RefCell::default(), RefCell::default());
        let shapes = RefCell::default();
        Self {
            file,
            findings,
            subject: what,
            span,
            entries,
            legacy,
            used,
            requested,
            shapes,
            missing,
            sibling_keys: &[],
        }
    }

    /// Sets the keys next to this mapping. A required field that one of them may stand for is not reported as missing.
    pub fn with_sibling_keys(mut self, keys: &'a [String]) -> Self {
        self.sibling_keys = keys;
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

    pub fn subject(&self) -> &Message {
        &self.subject
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes a key that is not a field of this mapping, so that the caller can report more than an unknown key.
    pub fn take_unknown(&self, key: &str) -> Option<&'a YamlEntry> {
        let (entry, used) = self.entries.iter().zip(&self.used).find(|(entry, _)| entry.key.value == key)?;
        used.set(true);
        Some(entry)
    }

    /// Whether `name`, which is a field of this mapping, is given. It counts as known even if it is not read.
    pub(crate) fn has_field(&self, name: &'static str) -> bool {
        self.requested.borrow_mut().push(name);
        self.has(name)
    }

    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.value == key)
    }

    /// Reports that one of `names` is missing, unless an unknown key is found to stand for one of them.
    pub fn report_missing(&self, names: &[&'static str], diagnostic: Diagnostic) {
        self.missing.borrow_mut().push((names.to_vec(), diagnostic));
    }

    pub fn take(&self, name: &'static str) -> Option<&'a Arc<YamlNode>> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The entry of `name`, with key and value.
    pub fn entry(&self, name: &'static str) -> Option<&'a YamlEntry> {
        self.requested.borrow_mut().push(name);
        let is_current = |entry: &YamlEntry| entry.key.value == name;
        let mut spellings = self.legacy.iter().filter(|(_, current)| current == name).peekable();
        if spellings.peek().is_none() {
            // Keys are unique within a mapping.
            let (entry, used) = self.entries.iter().zip(&self.used).find(|(entry, _)| is_current(entry))?;
            used.set(true);
            return Some(entry);
        }
        let legacy: Vec<usize> = spellings.map(|(index, _)| *index).collect();
        let mut found: Vec<&'a YamlEntry> = Vec::new();
        let mut requested_before = false;
        for (index, (entry, used)) in self.entries.iter().zip(&self.used).enumerate() {
            if is_current(entry) || legacy.contains(&index) {
                requested_before |= used.replace(true);
                found.push(entry);
            }
        }
        let chosen = found.iter().copied().find(|entry| is_current(entry)).or(found.first().copied())?;
        // Renaming one of several would create a duplicate key.
        match found.as_slice() {
            _ if requested_before => {}
            [only] if !is_current(only) => self.warn_deprecated(only, name),
            _ => found
                .iter()
                .filter(|other| !std::ptr::eq(**other, chosen))
                .for_each(|other| self.report_duplicate(chosen, other, name)),
        }
        Some(chosen)
    }

    fn report_duplicate(&self, chosen: &YamlEntry, other: &YamlEntry, name: &str) {
        if chosen.value.to_json() == other.value.to_json() {
            let message = msg!("`{}` repeats `{name}` with the same value", other.key.value);
            let diagnostic = Diagnostic::warning("deprecated-field", message, self.file, other.key.span);
            let mut diagnostic = diagnostic.with_help("remove it");
            if let Some(edit) = removal(self.file, self.span, other) {
                diagnostic = diagnostic.with_sure_fix("remove it", vec![edit]);
            }
            self.findings.report(diagnostic.with_related("it is already given here", self.file, chosen.key.span));
            return;
        }
        let message =
            msg!("`{}` and `{}` both mean `{name}`, but have different values", chosen.key.value, other.key.value);
        let diagnostic = Diagnostic::error("conflicting-spellings", message, self.file, other.key.span);
        let diagnostic = diagnostic.with_help(msg!("keep the one you want, under the name `{name}`"));
        self.findings.report(diagnostic.with_related("the other one", self.file, chosen.key.span));
    }

    fn warn_deprecated(&self, entry: &YamlEntry, name: &str) {
        let message = msg!("`{}` is a deprecated name for `{name}`", entry.key.value);
        self.findings.report(
            Diagnostic::warning("deprecated-field", message, self.file, entry.key.span)
                .with_help(msg!("write `{name}`"))
                .with_sure_fix(msg!("rename to `{name}`"), vec![renamed(self.file, &entry.key, name)]),
        );
    }

    /// Records the type expected of `name`.
    fn record_shape(&self, name: &'static str, shape: FieldShape) {
        self.shapes.borrow_mut().push((name, shape));
    }

    /// The value of `name`. Reports `missing-key` if it is absent or null.
    pub fn required(&self, name: &'static str) -> Option<&'a Arc<YamlNode>> {
        let entry = self.entry(name);
        let value = entry.map(|entry| &entry.value).filter(|node| !is_null(node));
        if value.is_none() {
            let (message, span) = match entry {
                Some(entry) => (msg!("`{name}` of {} is empty", self.subject), entry.key.span),
                // The first key is a better position than a mapping of many lines.
                None => (
                    msg!("{} needs `{name}`", self.subject),
                    self.entries.first().map_or(self.span, |entry| entry.key.span),
                ),
            };
            let diagnostic = Diagnostic::error("missing-key", message, self.file, span);
            let help = match example(name) {
                Some(example) => Message::word(example),
                None => msg!("add `{name}: …`, aligned with the other fields"),
            };
            self.report_missing(&[name], diagnostic.with_help(help));
        }
        value
    }

    /// A text; numbers and booleans are read as the text they are written as. Lists, mappings and null are `wrong-type`.
    pub fn text(&self, name: &'static str) -> Option<TextField> {
        self.record_shape(name, FieldShape::Text);
        self.take(name).and_then(|node| self.as_text(name, node))
    }

    /// The text of a required field.
    pub fn required_text(&self, name: &'static str) -> Option<TextField> {
        self.record_shape(name, FieldShape::Text);
        self.required(name).and_then(|node| self.as_text(name, node))
    }

    pub(super) fn as_text(&self, name: &str, node: &Arc<YamlNode>) -> Option<TextField> {
        match node.as_scalar() {
            Some(scalar) if !is_null(node) => Some(TextField { text: scalar.text.clone(), node: Arc::clone(node) }),
            _ => {
                let mut diagnostic = self.wrong_type(name, "text".into(), node);
                let is_list = matches!(node.kind, NodeKind::Sequence(_));
                let list_help = || {
                    is_list.then(|| msg!("write it as a single string, as in `{name}: …`, without brackets or dashes"))
                };
                let null_help = || is_null(node).then(|| msg!("write a text after `{name}:`, or remove the key"));
                if let Some(help) = help_for(self.file, node).or_else(list_help).or_else(null_help) {
                    diagnostic = diagnostic.with_help(help);
                }
                self.findings.report(diagnostic);
                None
            }
        }
    }

    /// A name or id, with its position.
    pub fn name(&self, name: &'static str) -> Option<Spanned<String>> {
        self.text(name).map(|words| Spanned { value: words.text, span: words.node.span })
    }

    pub fn boolean(&self, name: &'static str) -> Option<bool> {
        self.record_shape(name, FieldShape::Boolean);
        let node = self.take(name)?;
        match node.to_json().as_bool() {
            Some(truth) => Some(truth),
            None => {
                let literal = node.as_scalar().and_then(|scalar| boolean_of_word(&scalar.text));
                let diagnostic = self.wrong_type(name, "`true` or `false`".into(), node);
                let diagnostic = diagnostic.with_help("write `true` or `false`, without quotes");
                self.findings.report(diagnostic.with_sure_replacement(literal));
                None
            }
        }
    }

    pub fn integer(&self, name: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        self.record_shape(name, FieldShape::Number);
        let node = self.take(name)?;
        let number = node.to_json();
        let parsed = number.as_u64().and_then(|n| u32::try_from(n).ok());
        match parsed {
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

    /// One of `choices`. `true` and `false` are read as `on` and `off` where these are choices, as in YAML 1.1.
    pub fn choice(&self, name: &'static str, choices: &[&'static str]) -> Option<&'static str> {
        self.record_shape(name, FieldShape::Text);
        let node = self.take(name)?;
        let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
        let text = match text {
            "true" if choices.contains(&"on") => "on",
            "false" if choices.contains(&"off") => "off",
            other => other,
        };
        let choice = choices.iter().copied().find(|choice| *choice == text);
        if choice.is_none() {
            let fallback_help = "write one of these exactly as shown, or omit the field";
            self.not_a_choice(name, text, choices, node.span, fallback_help);
        }
        choice
    }

    pub fn list(&self, name: &'static str) -> Option<&'a [Arc<YamlNode>]> {
        self.record_shape(name, FieldShape::List);
        let node = self.take(name)?;
        match &node.kind {
            NodeKind::Sequence(items) => Some(items),
            _ => {
                let help = example(name).unwrap_or("start each item on its own line, with `- `");
                match inline_list(self.file.slice(node.span)).filter(|_| node.as_scalar().is_some()) {
                    Some(list) => {
                        let diagnostic = self.wrong_type(name, "a list".into(), node);
                        let diagnostic = diagnostic.with_help(msg!("put the items in brackets: `{list}`"));
                        self.findings.report(diagnostic.with_sure_replacement(Some(&list)));
                    }
                    None => self.report_wrong_type(name, "a list", node, help),
                }
                None
            }
        }
    }

    /// The items of a required list, which must not be empty.
    pub fn required_list(&self, name: &'static str) -> Option<&'a [Arc<YamlNode>]> {
        self.record_shape(name, FieldShape::List);
        let node = self.required(name)?;
        let items = self.list(name)?;
        if items.is_empty() {
            let message = msg!("`{name}` of {} is empty", self.subject);
            let help = "add at least one item, or remove the part that contains it";
            self.error("empty-list", message, node.span, help);
            return None;
        }
        Some(items)
    }

    /// Reports an item of the list `name` that is text where a mapping with this text under `key` is expected.
    pub fn report_bare_name(&self, name: &str, key: &str, text: &str, span: Span) {
        let message = msg!("an item of `{name}` must be a mapping of fields, but this is only a name");
        let help = match text.contains('：') {
            true => full_width_colon_help(),
            false => msg!("write `- {key}: {}`", shortened(text)),
        };
        let diagnostic = Diagnostic::error("wrong-type", message, self.file, span).with_help(help);
        // Inside `[ ]` a mapping needs braces, and they are valid everywhere else.
        let item = format!("{{ {key}: {} }}", self.file.slice(span));
        // Text that joins several fields is not a name.
        let joins_fields = text.contains([':', '：', '\n']);
        let item = Some(item.as_str()).filter(|_| !span.is_empty() && !joins_fields);
        let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
        let diagnostic =
            if is_name { diagnostic.with_sure_replacement(item) } else { diagnostic.with_replacement(item) };
        self.findings.report(diagnostic.with_fixes(fix_full_width_colons(self.file, span)));
    }

    /// Marks `name` as known without reading it.
    pub fn ignore(&self, name: &'static str) {
        let _ = self.take(name);
    }

    /// Reports every unknown key. Keys that start with `x-` are reserved for the author.
    pub fn finish(self) {
        self.finish_with(|_| None);
    }

    /// The fields of a node inside this one.
    pub fn inner<'n>(&self, node: &'n YamlNode, what: impl Into<Message>) -> Option<Fields<'n>>
    where
        'a: 'n,
    {
        Fields::of(node, what, self.file, self.findings)
    }

    /// Reports an error with its help.
    pub fn error(&self, rule: &'static str, message: impl Into<Message>, span: Span, help: impl Into<Message>) {
        self.findings.report(Diagnostic::error(rule, message, self.file, span).with_help(help));
    }

    /// Reports `wrong-type` of the field `name`, with its help.
    pub(crate) fn report_wrong_type(
        &self,
        name: &str,
        expected: impl Into<Message>,
        node: &YamlNode,
        help: impl Into<Message>,
    ) {
        self.findings.report(self.wrong_type(name, expected.into(), node).with_help(help));
    }

    /// Reports that `text`, written at `span`, is not one of the `choices` of `name`. `fallback_help` is used if no choice is similar.
    pub(crate) fn not_a_choice(
        &self,
        name: &str,
        text: &str,
        choices: &[&str],
        span: Span,
        fallback_help: impl Into<Message>,
    ) {
        let listed = choices.iter().map(|choice| Message::text(format!("`{choice}`")));
        let message = msg!("`{name}` must be one of {listed}", listed = Message::list(Joint::Item, listed));
        let near = near_miss(text, choices.iter().copied());
        let diagnostic = Diagnostic::error("not-a-choice", message, self.file, span);
        self.findings.report(diagnostic.with_suggestion_or(near, || fallback_help.into()));
    }

    /// The `wrong-type` diagnostic of the field `name`, without reporting it.
    pub(crate) fn wrong_type(&self, name: &str, expected: Message, node: &YamlNode) -> Diagnostic {
        let message = msg!("`{name}` must be {expected}, but this is {}", node.describe());
        Diagnostic::error("wrong-type", message, self.file, node.span)
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        let has_sibling = |names: &[&str]| {
            let mut fields = self
                .sibling_keys
                .iter()
                .flat_map(|key| [key.as_str()].into_iter().chain(other_name_of(key).iter().copied()));
            fields.any(|field| names.contains(&field))
        };
        let missing = self.missing.take().into_iter().filter(|(names, _)| !has_sibling(names));
        self.findings.extend(missing.map(|(_, diagnostic)| diagnostic));
    }
}

/// Whether the node is null, written or empty.
pub fn is_null(node: &YamlNode) -> bool {
    node.as_scalar().is_some_and(|scalar| scalar.value().is_null())
}

/// A name cut to a length that fits in a message.
pub fn shortened(name: &str) -> String {
    const MAX_CHARS: usize = 60;
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    name.chars().take(MAX_CHARS).chain(['…']).collect()
}
