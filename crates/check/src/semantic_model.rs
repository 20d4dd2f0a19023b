//! One document, walked: what rules ask about it, made when the first of them asks.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::callables::Callables;
use crate::collected::{ActionFact, CalleeBody, Collected};
use crate::context::CheckContext;
use crate::graph::ControlFlowGraph;
use crate::library::SkillLibrary;
use crate::name_table::NameTable;
use crate::paths::DocumentPaths;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::script::Script;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::kind::Kind;

pub struct SemanticModel<'a> {
    pub file: &'a Arc<SourceFile>,
    /// The script, when it is one.
    pub script: Option<&'a Script>,
    /// The skills that the document itself holds: those of a script, or the one of a skill's file.
    pub skills: &'a [&'a WrittenSkill],
    pub kinds: &'a [&'a dyn Kind],
    pub templates: &'a Templates,
    pub reply_schemas: &'a BTreeMap<String, Value>,
    pub library: &'a SkillLibrary,
    /// The models of the project's configuration, when that could be read.
    pub models: Option<&'a [String]>,
    pub seen: Collected,
    /// The graph, once somebody asked for it with [`crate::edges::graph`].
    pub graph: OnceCell<ControlFlowGraph>,
    names: OnceCell<NameTable>,
    paths: OnceCell<DocumentPaths>,
    callables: OnceCell<Callables<'a>>,
}

impl<'a> SemanticModel<'a> {
    pub fn new(
        file: &'a Arc<SourceFile>,
        script: Option<&'a Script>,
        skills: &'a [&'a WrittenSkill],
        against: &'a CheckContext<'_>,
        seen: Collected,
    ) -> Self {
        let CheckContext { kinds, templates, reply_schemas, library, models, custom: _ } = against;
        Self {
            file,
            script,
            skills,
            kinds,
            templates,
            reply_schemas,
            library,
            models: *models,
            seen,
            graph: OnceCell::new(),
            names: OnceCell::new(),
            paths: OnceCell::new(),
            callables: OnceCell::new(),
        }
    }

    /// What `insert` and `use_skill` may name.
    pub fn callables(&self) -> &Callables<'a> {
        self.callables
            .get_or_init(|| Callables::of(self.file, self.script, self.skills, self.library, &self.seen.actions))
    }
}

impl SemanticModel<'_> {
    /// Whether everything could be read. Where it could not, what *is not there* proves nothing: a rule that argues from
    /// absence (never used, never set, never reached) must be silent.
    pub fn whole(&self) -> bool {
        self.seen.whole
    }

    /// Every name with the places that define and use it.
    pub fn names(&self) -> &NameTable {
        self.names.get_or_init(|| NameTable::of(&self.seen))
    }

    /// Which place can be reached from which.
    pub fn paths(&self) -> &DocumentPaths {
        self.paths.get_or_init(|| DocumentPaths::of(&self.seen, self.script))
    }

    /// What to call a part of the document in a message: "the topic `greeting`".
    pub fn part_name(&self, body: CalleeBody) -> Message {
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

    pub fn kind_of(&self, action: &ActionFact) -> Option<&dyn Kind> {
        self.kinds.iter().copied().find(|kind| kind.name() == action.kind.value)
    }
}
