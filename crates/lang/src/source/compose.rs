//! Builds the tree from the parser's events: anchors, keys, tags, and limits against hostile files.

use crate::message::msg;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScanError, StructureStyle};

use crate::source::diagnostic::{Diagnostic, sort};
use crate::source::json_file::{broken_json, is_json_name};
use crate::source::misreading;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::syntax;
use crate::source::tags;
use crate::source::text::{self, BYTE_ORDER_MARK, SourceFile};
use crate::source::yaml::{
    MAX_DEPTH, MAX_NODES, MAX_STATE_FILE_NODES, MAX_TEXT_BYTES, NodeKind, ParsedYaml, Scalar, ScalarStyle, YamlEntry,
    YamlNode,
};

/// Further diagnostics are dropped: a file could otherwise have a million.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// Reads a file of one YAML 1.2 document (docs/language.md "The file").
///
/// Rules that it reports: `yaml-syntax` (ends the document), `file-too-large`, `not-text`, `too-deep`, `too-many-nodes`,
/// `empty-document` (no root); `several-documents`, `duplicate-key`, `key-not-text`, `merge-key`, `unknown-anchor`,
/// `recursive-alias`, `unknown-tag`, `tag-mismatch` (the root is what remains). Time and memory are linear in the size of
/// the file, whatever its aliases expand to.
pub fn parse(file: &Arc<SourceFile>) -> ParsedYaml {
    let rejection = if file.text().len() > text::max_bytes(file.text().as_bytes()) {
        Some(text::too_large(file, text::max_bytes(file.text().as_bytes())))
    } else {
        memchr::memchr(0, file.text().as_bytes()).map(|byte| text::binary(file, byte))
    };
    if let Some(diagnostic) = rejection {
        return ParsedYaml { root: None, diagnostics: vec![diagnostic] };
    }
    let mut options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut composer = Composer::new(file);
    for event in Parser::new_from_str_with_options(file.text(), options) {
        match event {
            Ok((event, span)) => composer.event(event, span),
            Err(error) => composer.syntax_error(&error),
        }
        if composer.stopped {
            break;
        }
    }
    let parsed = composer.finish();
    // YAML includes JSON: what is no YAML is no JSON either.
    let broken = if parsed.root.is_none() { broken_json(file) } else { None };
    match broken {
        Some(broken) => ParsedYaml { root: None, diagnostics: vec![broken] },
        None => parsed,
    }
}

/// The size of a node with its aliases expanded, and its depth (a scalar: 0).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weight {
    nodes: usize,
    bytes: usize,
    height: usize,
}

/// A node that was read. A new one can become a key without being shared; half of all nodes do.
pub(crate) enum Finished {
    New(YamlNode),
    Shared(Arc<YamlNode>),
}

impl Finished {
    pub(crate) fn node(&self) -> &YamlNode {
        match self {
            Self::New(node) => node,
            Self::Shared(node) => node,
        }
    }

    fn shared(self) -> Arc<YamlNode> {
        match self {
            Self::New(node) => Arc::new(node),
            Self::Shared(node) => node,
        }
    }

    /// The text of a scalar; empty for a collection.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::New(YamlNode { kind: NodeKind::Scalar(scalar), .. }) => scalar.text,
            other => other.node().as_scalar().map(|scalar| scalar.text.clone()).unwrap_or_default(),
        }
    }
}

/// A collection that is being read.
pub(crate) struct ComposeFrame {
    pub(crate) start: usize,
    /// The end of its last child in the file (not of the target of an alias).
    end: usize,
    /// Whether it is in flow style.
    pub(crate) flow: bool,
    anchor: usize,
    weight: Weight,
    pub(crate) kind: FrameKind,
}

pub(crate) enum FrameKind {
    Sequence(Vec<Arc<YamlNode>>),
    Mapping {
        entries: Vec<YamlEntry>,
        key: PendingKey,
        /// The mapping is `{{ … }}`, which is meant as text: it becomes the source text.
        template: bool,
    },
}

pub(crate) enum PendingKey {
    None,
    /// The next node is the value of this key.
    Key(Spanned<String>),
    /// The next node is the value of something that cannot be a key: it is dropped.
    Rejected,
}

pub(crate) struct Composer<'f> {
    max_nodes: usize,
    pub(crate) file: &'f Arc<SourceFile>,
    diagnostics: Vec<Diagnostic>,
    pub(crate) frames: Vec<ComposeFrame>,
    anchors: HashMap<usize, (Arc<YamlNode>, Weight)>,
    anchor_names: Vec<String>,
    root: Option<Arc<YamlNode>>,
    /// The start of the last node that was read; the parser's own position is often further on.
    last_node: usize,
    documents: usize,
    /// The number of nodes read, without those that aliases repeat.
    nodes: usize,
    stopped: bool,
}

impl<'f> Composer<'f> {
    fn new(file: &'f Arc<SourceFile>) -> Self {
        let is_large = text::may_be_large(file.text().as_bytes());
        Self {
            file,
            max_nodes: if is_large { MAX_STATE_FILE_NODES } else { MAX_NODES },
            diagnostics: Vec::new(),
            frames: Vec::new(),
            anchors: HashMap::new(),
            anchor_names: Vec::new(),
            root: None,
            last_node: 0,
            documents: 0,
            nodes: 0,
            stopped: false,
        }
    }

    fn finish(mut self) -> ParsedYaml {
        if self.root.is_none() && !self.stopped {
            let comments =
                !self.file.text().trim_matches(|c: char| c.is_whitespace() || c == BYTE_ORDER_MARK).is_empty();
            let message = match (comments, self.documents) {
                (false, _) => "the file is empty",
                (true, 0) => "the file contains only comments",
                (true, _) => "the document in this file is empty",
            };
            let help = match is_json_name(self.file.name()) {
                true => "get it again from the program that wrote it, or choose another file",
                false => "write a script: its first line is `session:`, `skill:`, `test:` or `workflow_id: …`",
            };
            self.report(Diagnostic::error("empty-document", message, self.file, Span::default()).with_help(help));
        }
        sort(&mut self.diagnostics);
        ParsedYaml { root: self.root, diagnostics: self.diagnostics }
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.report_with(|_| diagnostic);
    }

    /// Reports a diagnostic that takes some work to create, unless there are enough already.
    pub(crate) fn report_with(&mut self, describe: impl FnOnce(&Self) -> Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            let diagnostic = describe(self);
            self.diagnostics.push(diagnostic);
        }
    }

    /// The value of a check, with its diagnostic reported.
    fn checked<T>(&mut self, outcome: Result<T, Box<Diagnostic>>) -> Option<T> {
        outcome.map_err(|diagnostic| self.report(*diagnostic)).ok()
    }

    /// Reports an error that ends the document without a tree.
    pub(crate) fn stop(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.truncate(MAX_DIAGNOSTICS - 1);
        self.report(diagnostic);
        self.stopped = true;
        self.root = None;
    }

    fn syntax_error(&mut self, error: &ScanError) {
        let diagnostic = syntax::diagnose(self.file, error, self.last_node);
        // `*bold* text` is first an unknown alias and then a syntax error: one mistake, which the second one explains better.
        let line = |diagnostic: &Diagnostic| self.file.line(diagnostic.span.start);
        let superseded = ["unknown-anchor", "unknown-tag", "key-not-text"];
        let same_line = |last: &Diagnostic| superseded.contains(&last.rule) && line(last) == line(&diagnostic);
        if self.diagnostics.last().is_some_and(same_line) {
            self.diagnostics.pop();
        }
        self.stop(diagnostic);
    }

    fn event(&mut self, event: Event<'_>, at: granit_parser::Span) {
        let span = self.span(at);
        let tag_span = at.tag_span().map_or(span, |tag| self.span(tag));
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let help =
                        "a file contains one document: remove this line, or move what follows to a separate file";
                    self.report(
                        Diagnostic::error("several-documents", "a second document starts here", self.file, span)
                            .with_help(help),
                    );
                    self.stopped = true;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = self.checked(tags::of_scalar(tag.as_deref(), &text, self.file, tag_span)).flatten();
                let style = style_of(style);
                let absent = style == ScalarStyle::Plain && span.is_empty();
                let span = scalar_span(self.file, style, span);
                // The parser reports an absent node as `~`.
                let text = if absent { String::new() } else { text.into_owned() };
                let scalar = Scalar { text, style, tag };
                let weight = Weight { nodes: 1, bytes: scalar.text.len(), height: 0 };
                let node = YamlNode { span, kind: NodeKind::Scalar(scalar) };
                self.complete(Finished::New(node), anchor, weight, span);
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.checked(tags::of_collection(tag.as_deref(), "seq", self.file, tag_span));
                self.open(style, anchor, span, FrameKind::Sequence(Vec::new()));
            }
            Event::MappingStart(style, anchor, tag) => {
                self.checked(tags::of_collection(tag.as_deref(), "map", self.file, tag_span));
                let kind = FrameKind::Mapping { entries: Vec::new(), key: PendingKey::None, template: false };
                self.open(style, anchor, span, kind);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Anchor(_, name) => self.anchor_names.push(name.into_owned()),
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some((node, weight)) => self.complete(Finished::Shared(node), 0, weight, span),
                None => {
                    let name = self.file.slice(span);
                    let message = msg!("`{name}` is used inside the value that it refers to, which would never end");
                    let help = "remove it, or write out the intended value";
                    self.report(Diagnostic::error("recursive-alias", message, self.file, span).with_help(help));
                    self.placeholder(span);
                }
            },
            Event::UnresolvedAlias(name) => {
                self.report_with(|composer| composer.unknown_anchor(&name, span));
                self.placeholder(span);
            }
            _ => {}
        }
    }

    fn unknown_anchor(&self, name: &str, span: Span) -> Diagnostic {
        let message = msg!("this file has no anchor `&{name}`");
        let diagnostic = Diagnostic::error("unknown-anchor", message, self.file, span);
        // The nearest anchors in the file come first.
        match near_miss(name, self.anchor_names.iter().rev().map(String::as_str)) {
            Some(near) => diagnostic.with_help(msg!("did you mean `*{near}`?")),
            None => {
                let help = "if it is text that starts with `*`, put it in quotes";
                // Without any anchor in the file, no alias is intended.
                let fix = misreading::quote(self.file, span).only_sure_if(self.anchor_names.is_empty());
                diagnostic.with_help(help).with_fixes([fix])
            }
        }
    }

    /// Adds the source text as a scalar, in place of something that was reported, so that reading can continue.
    fn placeholder(&mut self, span: Span) {
        let scalar = Scalar { text: self.file.slice(span).to_owned(), style: ScalarStyle::Plain, tag: None };
        let weight = Weight { nodes: 1, bytes: scalar.text.len(), height: 0 };
        self.complete(Finished::New(YamlNode { span, kind: NodeKind::Scalar(scalar) }), 0, weight, span);
    }

    fn span(&self, span: granit_parser::Span) -> Span {
        // For a `str`, the parser always gives byte offsets.
        let (start, end) = (span.start.byte_offset().unwrap_or(0), span.end.byte_offset().unwrap_or(0));
        self.file.clamp(Span::new(start, end))
    }

    fn open(&mut self, style: StructureStyle, anchor: usize, span: Span, kind: FrameKind) {
        self.last_node = span.start;
        if self.frames.len() >= MAX_DEPTH {
            self.stop(syntax::too_deep(self.file, span));
            return;
        }
        let flow = style == StructureStyle::Flow;
        let weight = Weight { nodes: 1, bytes: 0, height: 1 };
        self.frames.push(ComposeFrame { start: span.start, end: span.end, flow, anchor, weight, kind });
    }

    fn close(&mut self, at: Span) {
        let Some(frame) = self.frames.pop() else { return };
        // A block collection ends at its last child: its end event comes after the comments that follow.
        let bracket = frame.flow && matches!(self.file.slice(at), "]" | "}");
        let span = Span::new(frame.start, if bracket { at.end } else { frame.end });
        let kind = match frame.kind {
            FrameKind::Sequence(items) => NodeKind::Sequence(items),
            FrameKind::Mapping { template: true, .. } => NodeKind::Scalar(Scalar {
                text: self.file.slice(span).to_owned(),
                style: ScalarStyle::Plain,
                tag: None,
            }),
            FrameKind::Mapping { entries, .. } => NodeKind::Mapping(self.without_duplicates(entries)),
        };
        self.complete(Finished::New(YamlNode { span, kind }), frame.anchor, frame.weight, span);
    }

    /// Adds a finished node to its parent. `source` is its position in the file: for an alias, the alias itself.
    fn complete(&mut self, mut node: Finished, anchor: usize, weight: Weight, source: Span) {
        self.last_node = source.start;
        if anchor != 0 {
            let shared = node.shared();
            self.anchors.insert(anchor, (Arc::clone(&shared), weight));
            node = Finished::Shared(shared);
        }
        if self.frames.len() + weight.height > MAX_DEPTH {
            self.stop(syntax::too_deep(self.file, source));
            return;
        }
        let Some(frame) = self.frames.last_mut() else {
            let node = node.shared();
            let absent = node.span.is_empty() && node.as_scalar().is_some_and(|scalar| scalar.tag.is_none());
            self.root = if absent { None } else { Some(node) };
            return;
        };
        frame.end = frame.end.max(source.end);
        frame.weight.nodes = frame.weight.nodes.saturating_add(weight.nodes);
        frame.weight.bytes = frame.weight.bytes.saturating_add(weight.bytes);
        frame.weight.height = frame.weight.height.max(weight.height + 1);
        self.nodes += 1;
        let nodes = frame.weight.nodes.max(self.nodes);
        if nodes > self.max_nodes || frame.weight.bytes > MAX_TEXT_BYTES {
            let max_nodes = self.max_nodes;
            let message = if nodes > max_nodes {
                msg!(
                    "the document has more than {MAX_NODES} nodes after its aliases are expanded",
                    MAX_NODES = max_nodes
                )
            } else {
                msg!("the document has more than {MAX_TEXT_BYTES} bytes of text after its aliases are expanded")
            };
            self.stop(
                Diagnostic::error("too-many-nodes", message, self.file, source)
                    .with_help("put data of this size in a separate file"),
            );
            return;
        }
        match &mut frame.kind {
            FrameKind::Sequence(items) => items.push(node.shared()),
            FrameKind::Mapping { entries, key, .. } => match mem::replace(key, PendingKey::None) {
                PendingKey::Key(key) => entries.push(YamlEntry { key, value: node.shared() }),
                PendingKey::Rejected => {}
                PendingKey::None => self.key(node, source),
            },
        }
    }
}

/// The span of a scalar, as [`YamlNode::span`] defines it.
fn scalar_span(file: &SourceFile, style: ScalarStyle, span: Span) -> Span {
    let indicator = match style {
        ScalarStyle::Literal => '|',
        ScalarStyle::Folded => '>',
        // An absent value is reported before the colon of its key.
        ScalarStyle::Plain if span.is_empty() => {
            let colon = file.text().get(span.start..).is_some_and(|rest| rest.starts_with(':'));
            return Span::point(span.start + usize::from(colon));
        }
        _ => return span,
    };
    // The parser's span of a block scalar starts at its text, and includes the empty lines after it. Without text, it starts
    // at the indicator or after all empty lines: then the indicator is the position.
    let written = file.slice(span).trim_end();
    let before = file.text().get(..span.start).unwrap_or("");
    let starts_line = before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r']);
    if !written.is_empty() && (starts_line || !written.starts_with(indicator)) {
        return Span::new(span.start, span.start + written.len());
    }
    let until = span.start + usize::from(written.starts_with(indicator));
    let place = file.text().get(..until).and_then(|before| before.rfind(indicator));
    place.map_or(Span::point(span.start), |place| Span::new(place, place + 1))
}

fn style_of(style: granit_parser::ScalarStyle) -> ScalarStyle {
    match style {
        granit_parser::ScalarStyle::Plain => ScalarStyle::Plain,
        granit_parser::ScalarStyle::SingleQuoted => ScalarStyle::SingleQuoted,
        granit_parser::ScalarStyle::DoubleQuoted => ScalarStyle::DoubleQuoted,
        granit_parser::ScalarStyle::Literal => ScalarStyle::Literal,
        granit_parser::ScalarStyle::Folded => ScalarStyle::Folded,
    }
}
