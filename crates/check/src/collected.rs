//! What the walk over a document saw, as data: its actions, names, texts, expressions and calls, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use bcc_lang::expr::parse::Expr;
use bcc_lang::script::routes::{OnExit, WrittenTrigger};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::text::Text;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::kind::{Described, SkillArgument};
use bcc_runtime::program::output::OutputVariable;

#[derive(Debug, Default)]
pub struct Collected {
    /// The actions; one that stands inside another comes after it.
    pub actions: Vec<ActionFact>,
    pub definitions: Vec<Definition>,
    pub uses: Vec<Use>,
    /// Those of them that were not known where the walk came to them.
    pub unknown: Vec<UnknownUse>,
    pub outputs: Vec<OutputFact>,
    pub sets: Vec<SetFact>,
    pub expressions: Vec<ExpressionFact>,
    pub texts: Vec<TextFact>,
    pub prompts: Vec<PromptFact>,
    pub routes: Vec<RoutesFact>,
    /// Where actions themselves go to another topic or phase.
    pub gotos: Vec<(Spanned<String>, ActionPosition)>,
    pub triggers: Vec<WrittenTrigger>,
    /// The calls of skills: by `use_skill`, and by kinds of the project.
    pub calls: Vec<CallFact>,
    /// The parts of the document, with the ticks of the clock between which the walk was in each.
    pub parts: BTreeMap<CalleeBody, Range<usize>>,
    /// Counts what the walk came to: what has a smaller number stands before.
    pub clock: usize,
    /// See [`crate::semantic_model::SemanticModel::whole`].
    pub whole: bool,
}

impl Collected {
    pub fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    pub fn enter(&mut self, body: CalleeBody) {
        let now = self.tick();
        self.parts.insert(body, now..usize::MAX);
    }

    pub fn leave(&mut self, body: CalleeBody) {
        let now = self.tick();
        if let Some(part) = self.parts.get_mut(&body) {
            part.end = now;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CalleeBody {
    /// Beside the phases.
    Session,
    /// In a phase, beside its topics: the phase's number.
    Phase(usize),
    /// In a topic: the numbers of its phase and of itself in the phase.
    Topic(usize, usize),
    /// In a skill of this document: its number in [`crate::semantic_model::SemanticModel::skills`].
    Skill(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionPosition {
    pub body: CalleeBody,
    /// The action, as a number in [`Collected::actions`]; none beside the actions.
    pub action: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct ActionFact {
    /// `action_id`; empty when it is missing.
    pub id: Spanned<String>,
    /// `action_type`, whether or not there is such a kind.
    pub kind: Spanned<String>,
    pub span: Span,
    pub body: CalleeBody,
    /// The action inside of which it stands, as a number in [`Collected::actions`].
    pub parent: Option<usize>,
    /// The list in which it stands: of two lists inside of one action, the later one has the larger number.
    pub block: usize,
    /// Its `condition`, as a number in [`Collected::expressions`].
    pub condition: Option<usize>,
    /// Whether it has a `condition` at all, read or not.
    pub conditional: bool,
    pub on_exit: Option<OnExit>,
    pub described: Option<Described>,
    pub sound: bool,
    /// The ticks of the clock between which the walk was in it.
    pub order: Range<usize>,
}

/// How a name gets a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentKind {
    /// By `declare`.
    Declared,
    /// By an `output` or a `set`.
    Written,
    /// As an input of a skill.
    Input,
    /// As the element of `for_each`.
    Element,
}

/// A place that declares or writes a name.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub span: Span,
    pub at: ActionPosition,
    pub how: AssignmentKind,
    /// The scope: where it is declared, or what a `scope:` beside an output says.
    pub scope: Option<Scope>,
    /// The scope that it goes to: the one above, else that where the name is declared, else the session.
    pub to: Scope,
    pub order: usize,
    pub declared: Option<DeclaredType>,
    /// For a declaration: whether it has a value that is not null.
    pub has_value: bool,
}

/// By what a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    Text,
    Expression,
    /// A field that takes names alone, as `input_variables`.
    Field,
    Prompt,
}

/// A place that uses a name.
#[derive(Clone, Debug)]
pub struct Use {
    pub name: String,
    /// Where it stands. For a prompt, the action that takes it.
    pub place: UseLocation,
    pub at: ActionPosition,
    pub by: UseKind,
    /// Whether it works without the name: it is only asked for, or has a stand-in.
    pub optional: bool,
    /// How many definitions were there before it.
    pub defined_before: usize,
    pub order: usize,
}

/// A use of a name that nothing had defined when the walk came to it.
#[derive(Clone, Debug)]
pub struct UnknownUse {
    /// The use, as a number in [`Collected::uses`].
    pub of: usize,
    /// A name that was known there and is like it.
    pub near: Option<String>,
    /// Whether the name alone stands at its place, so that another can take it.
    pub alone: bool,
}

/// An item of the `output` of an action.
#[derive(Clone, Debug)]
pub struct OutputFact {
    /// What it says itself.
    pub output: OutputVariable,
    pub span: Span,
    pub declared: Option<DeclaredAs>,
    pub at: ActionPosition,
}

/// A variable that is set, by an action or a route.
#[derive(Clone, Debug)]
pub struct SetFact {
    pub name: Spanned<String>,
    /// The value, when it is a constant.
    pub constant: Option<Value>,
    pub span: Span,
    pub declared: Option<DeclaredAs>,
    pub at: ActionPosition,
    /// How many definitions were there before it: the same number for all that one `set` sets.
    pub defined_before: usize,
}

/// Where a name is used. The span of a part of a scalar is looked for only when something is reported.
#[derive(Clone, Debug)]
pub enum UseLocation {
    /// These bytes of the decoded text of a scalar.
    Within(Arc<YamlNode>, Range<usize>),
    Whole(Span),
}

impl UseLocation {
    pub fn span(&self, file: &SourceFile) -> Span {
        match self {
            Self::Within(node, range) => locate_bytes(file, node, range.clone()),
            Self::Whole(span) => *span,
        }
    }
}

/// What an expression is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionRole {
    /// It decides: `condition`, `when`.
    Condition,
    Value,
    /// It is a list to go through.
    List,
}

/// What a name is declared as: its type, and the values that it may take.
pub type DeclaredAs = (Option<DeclaredType>, Vec<Value>);

#[derive(Clone, Debug)]
pub struct ExpressionFact {
    /// The expression. Its ranges count in its own source.
    pub expression: Expr,
    pub node: Arc<YamlNode>,
    /// Where in the decoded text of the scalar its source begins, in bytes.
    pub start: usize,
    pub role: ExpressionRole,
    pub at: ActionPosition,
    pub declared: BTreeMap<String, DeclaredAs>,
}

impl ExpressionFact {
    /// Where a part of it, in bytes of its source, stands in the file.
    pub fn span(&self, file: &SourceFile, range: &Range<usize>) -> Span {
        locate_bytes(file, &self.node, range.start + self.start..range.end + self.start)
    }
}

#[derive(Clone, Debug)]
pub struct TextFact {
    pub text: Text,
    pub node: Arc<YamlNode>,
    pub at: ActionPosition,
}

/// A prompt template that an action takes.
#[derive(Clone, Debug)]
pub struct PromptFact {
    pub name: &'static str,
    pub version: u32,
    pub at: ActionPosition,
}

/// A table of routes, with what it belongs to: the action of `at`, else the topic, the phase or the session.
#[derive(Clone, Debug)]
pub struct RoutesFact {
    pub on_exit: OnExit,
    pub at: ActionPosition,
}

/// Who says that a skill is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBy {
    /// The author of the document, where the skill's id stands.
    Author,
    /// The kind of the project with this name; the fields of the action are the skill's inputs.
    Kind(String),
    /// A hook of the kind of the project with this name.
    Hook(String),
    /// The kind of the project with this name, or a hook of it, should somebody say so when the script runs.
    Maybe(String),
}

#[derive(Clone, Debug)]
pub struct CallFact {
    pub by: CallBy,
    pub skill: Spanned<String>,
    pub inputs: Vec<SkillArgument>,
    /// The names of the skill's outputs that are taken.
    pub outputs: Vec<Spanned<String>>,
    pub at: ActionPosition,
}
