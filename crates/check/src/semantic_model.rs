//! The model of a collected document that rules query. Derived data is computed on first use.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::callables::Callables;
use crate::collected::{CalleeBody, Collected, CollectedAction, CollectedText};
use crate::context::CheckContext;
use crate::graph::ControlFlowGraph;
use crate::library::SkillLibrary;
use crate::name_table::NameTable;
use crate::paths::DocumentPaths;
use crate::value_types::ValueTypes;
use bcc_lang::expr::tree::ExprNode;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::script::Script;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::templates::Templates;
use bcc_lang::value::declared::DeclaredType;
use bcc_runtime::program::kind::Kind;

pub struct SemanticModel<'a> {
    pub file: &'a Arc<SourceFile>,
    /// The script, if the document is one.
    pub script: Option<&'a Script>,
    /// The skills that the document itself contains: those of a script, or the one of a skill file.
    pub skills: &'a [&'a WrittenSkill],
    pub kinds: &'a [&'a dyn Kind],
    pub templates: &'a Templates,
    pub reply_schemas: &'a BTreeMap<String, Value>,
    pub library: &'a SkillLibrary,
    /// The models of the project's configuration, if it could be read.
    pub models: Option<&'a [String]>,
    pub collected: Collected,
    /// The graph, computed by [`crate::edges::graph`].
    pub graph: OnceCell<ControlFlowGraph>,
    names: OnceCell<NameTable>,
    paths: OnceCell<DocumentPaths>,
    callables: OnceCell<Callables<'a>>,
    text_operations: OnceCell<Vec<TextOperations>>,
    value_types: OnceCell<ValueTypes>,
}

/// The operations of an author text: the tree of each, whose ranges are relative to it, and its range in the text.
type TextOperations = Vec<(ExprNode, Range<usize>)>;

impl<'a> SemanticModel<'a> {
    pub fn new(
        file: &'a Arc<SourceFile>,
        script: Option<&'a Script>,
        skills: &'a [&'a WrittenSkill],
        context: &'a CheckContext<'_>,
        collected: Collected,
    ) -> Self {
        let CheckContext { kinds, templates, reply_schemas, library, models, custom: _ } = context;
        Self {
            file,
            script,
            skills,
            kinds,
            templates,
            reply_schemas,
            library,
            models: *models,
            collected,
            graph: OnceCell::new(),
            names: OnceCell::new(),
            paths: OnceCell::new(),
            callables: OnceCell::new(),
            text_operations: OnceCell::new(),
            value_types: OnceCell::new(),
        }
    }

    /// The skills and actions that `insert` and `use_skill` may name.
    pub(crate) fn callables(&self) -> &Callables<'a> {
        self.callables
            .get_or_init(|| Callables::of(self.file, self.script, self.skills, self.library, &self.collected.actions))
    }
}

impl SemanticModel<'_> {
    /// Whether everything could be read. If not, a missing item proves nothing: a rule that relies on absence (never used,
    /// never set, never reached) must not report.
    pub fn is_complete(&self) -> bool {
        self.collected.complete
    }

    /// All names, each with the places that define and use it.
    pub fn names(&self) -> &NameTable {
        self.names.get_or_init(|| NameTable::of(&self.collected))
    }

    /// Which places can be reached from which.
    pub fn paths(&self) -> &DocumentPaths {
        self.paths.get_or_init(|| DocumentPaths::of(&self.collected, self.script))
    }

    /// The author texts whose ranges are those of the file, as no legacy placeholder was replaced, each with its operations.
    pub(crate) fn text_operations(&self) -> impl Iterator<Item = (&CollectedText, &TextOperations)> {
        let is_as_written =
            |entry: &CollectedText| entry.node.as_scalar().is_some_and(|scalar| scalar.text == entry.text.source());
        let operations = |entry| if is_as_written(entry) { entry.text.operations() } else { Vec::new() };
        let texts = &self.collected.texts;
        let all = self.text_operations.get_or_init(|| texts.iter().map(operations).collect());
        texts.iter().zip(all).filter(|(_, operations)| !operations.is_empty())
    }

    /// Whether no value that is written at this place can be coerced to the type. False if this is not known.
    pub(crate) fn never_fits(&self, at: Span, declared: DeclaredType) -> bool {
        let types = self.value_types.get_or_init(|| ValueTypes::of(&self.collected));
        types.never_fits(&self.collected, at, declared)
    }

    /// The description of a part of the document in a message: "the topic `greeting`".
    pub(crate) fn part_name(&self, body: CalleeBody) -> Message {
        let phase = |number: usize| self.script.and_then(|script| script.phases.get(number));
        let named = match body {
            CalleeBody::Session => return msg!("the session"),
            CalleeBody::Phase(number) => phase(number).map(|phase| ("phase", &phase.id)),
            CalleeBody::Topic(number, topic) => {
                phase(number).and_then(|phase| phase.topics.get(topic)).map(|topic| ("topic", &topic.id))
            }
            CalleeBody::Skill(number) => self.skills.get(number).map(|skill| ("skill", &skill.id)),
        };
        named.map_or_else(
            || msg!("another part"),
            |(kind, id)| msg!("the {kind} `{}`", shortened(&id.value), kind = Message::word(kind)),
        )
    }

    /// The id of the skill that is this part.
    pub(crate) fn skill_of(&self, body: CalleeBody) -> Option<&str> {
        match body {
            CalleeBody::Skill(number) => self.skills.get(number).map(|skill| skill.id.value.as_str()),
            _ => None,
        }
    }

    pub fn kind_of(&self, action: &CollectedAction) -> Option<&dyn Kind> {
        self.kinds.iter().copied().find(|kind| kind.name() == action.kind.value)
    }
}
