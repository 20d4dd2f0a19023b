//! The data that the walk collects from a document: actions, names, texts, expressions and calls, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::cleanup::Cleanup;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::route_parser::{OnExit, WrittenTrigger};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::text::Text;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::kind::{ActionProperties, SkillArgument};
use bcc_runtime::program::output::OutputVariable;

#[derive(Debug, Default)]
pub struct Collected {
    /// The actions; a nested action comes after the one that contains it.
    pub actions: Vec<CollectedAction>,
    pub definitions: Vec<Definition>,
    pub uses: Vec<Use>,
    /// The uses whose names were not known when the walk reached them.
    pub unknown: Vec<UnknownUse>,
    pub outputs: Vec<CollectedOutput>,
    pub sets: Vec<CollectedAssignment>,
    pub expressions: Vec<CollectedExpression>,
    pub texts: Vec<CollectedText>,
    pub prompts: Vec<CollectedPrompt>,
    pub routes: Vec<CollectedRoutes>,
    /// The `goto`s in the configs of actions.
    pub gotos: Vec<(Spanned<String>, ActionPosition)>,
    /// The actions that approvals can go back to, each with the position of the approval.
    pub rewinds: Vec<(Spanned<String>, ActionPosition)>,
    pub triggers: Vec<WrittenTrigger>,
    /// The lists of actions that are a `finally` or a `compensate`, by [`CollectedAction::block`].
    pub cleanup_blocks: BTreeMap<usize, Cleanup>,
    /// The calls of skills by `use_skill` and by kinds of the project.
    pub calls: Vec<CollectedCall>,
    /// The parts of the document, each with the ticks of the clock at which the walk entered and left it.
    pub parts: BTreeMap<CalleeBody, Range<usize>>,
    /// A counter of the items of the walk: an item with a smaller number comes earlier.
    pub clock: usize,
    /// See [`crate::semantic_model::SemanticModel::is_complete`].
    pub complete: bool,
}

impl Collected {
    pub(crate) fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    /// The tables `on_exit`, without those of `on_change`.
    pub fn exit_tables(&self) -> impl Iterator<Item = &CollectedRoutes> {
        self.routes.iter().filter(|table| !table.is_on_change)
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
    /// In the session, outside the phases.
    Session,
    /// In a phase, outside its topics: the number of the phase.
    Phase(usize),
    /// In a topic: the number of its phase, and its own number in the phase.
    Topic(usize, usize),
    /// In a skill of this document: its number in [`crate::semantic_model::SemanticModel::skills`].
    Skill(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionPosition {
    pub body: CalleeBody,
    /// The action, as a number in [`Collected::actions`]; `None` outside actions.
    pub action: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct CollectedAction {
    /// `action_id`; empty when it is missing.
    pub id: Spanned<String>,
    /// `action_type`, even if there is no such kind.
    pub kind: Spanned<String>,
    pub span: Span,
    pub body: CalleeBody,
    /// The action that contains it, as a number in [`Collected::actions`].
    pub parent: Option<usize>,
    /// The number of its list: of two lists in one action, the later one has the larger number.
    pub block: usize,
    /// Its `condition`, as a number in [`Collected::expressions`].
    pub condition: Option<usize>,
    /// Whether it has a `condition`, readable or not.
    pub conditional: bool,
    pub on_exit: Option<OnExit>,
    pub described: Option<ActionProperties>,
    pub sound: bool,
    pub depends_on: Vec<Spanned<String>>,
    /// Whether it is in a `finally` or a `compensate`, at any depth.
    pub cleanup: Option<Cleanup>,
    /// The ticks of the clock at which the walk entered and left it.
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
    /// The scope of the declaration, or the `scope:` of an output.
    pub scope: Option<Scope>,
    /// The target scope: `scope` if given, else the one where the name is declared, else the session.
    pub to: Scope,
    pub order: usize,
    pub declared: Option<DeclaredType>,
    /// For a declaration: whether it has a value that is not null.
    pub has_value: bool,
}

/// What uses a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    Text,
    Expression,
    /// A field that contains only names, such as `input_variables`.
    Field,
    Prompt,
}

/// A place that uses a name.
#[derive(Clone, Debug)]
pub struct Use {
    pub name: String,
    /// The place in the file. For a prompt, the action that uses it.
    pub place: UseLocation,
    pub at: ActionPosition,
    pub by: UseKind,
    /// Whether the name may be missing: the use only tests it, or has a default.
    pub optional: bool,
    /// The number of definitions before it.
    pub defined_before: usize,
    pub order: usize,
}

/// A use of a name that was not defined when the walk reached it.
#[derive(Clone, Debug)]
pub struct UnknownUse {
    /// The use, as a number in [`Collected::uses`].
    pub of: usize,
    /// A similar name that was known there.
    pub near: Option<String>,
    /// Whether the place contains only the name, so that another name can replace it.
    pub alone: bool,
}

/// An item of the `output` of an action.
#[derive(Clone, Debug)]
pub struct CollectedOutput {
    /// Its own properties.
    pub output: OutputVariable,
    pub span: Span,
    pub declared: Option<DeclaredAs>,
    pub at: ActionPosition,
}

/// A variable that is set, by an action or a route.
#[derive(Clone, Debug)]
pub struct CollectedAssignment {
    pub name: Spanned<String>,
    /// The value, if it is a constant.
    pub constant: Option<Value>,
    pub span: Span,
    pub declared: Option<DeclaredAs>,
    pub at: ActionPosition,
    /// The number of definitions before it: the same for all variables of one `set`.
    pub defined_before: usize,
}

/// The place of a use. The span of a part of a scalar is computed only for a report.
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

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionRole {
    /// A condition: `condition`, `when`.
    Condition,
    Value,
    /// The list of a loop.
    List,
}

/// The declaration of a name: its type, and its allowed values.
pub(crate) type DeclaredAs = (Option<DeclaredType>, Vec<Value>);

#[derive(Clone, Debug)]
pub struct CollectedExpression {
    /// The expression. Its ranges are relative to its own source.
    pub expression: Expr,
    pub node: Arc<YamlNode>,
    /// The start of its source in the decoded text of the scalar, in bytes.
    pub start: usize,
    pub role: ExpressionRole,
    pub at: ActionPosition,
    pub declared: BTreeMap<String, DeclaredAs>,
}

impl CollectedExpression {
    /// The span in the file of a part of it, given in bytes of its source.
    pub fn span(&self, file: &SourceFile, range: &Range<usize>) -> Span {
        locate_bytes(file, &self.node, range.start + self.start..range.end + self.start)
    }
}

#[derive(Clone, Debug)]
pub struct CollectedText {
    pub text: Text,
    pub node: Arc<YamlNode>,
    /// Where it has legacy placeholders, in bytes of the text of the node.
    pub legacy: Vec<Range<usize>>,
    pub at: ActionPosition,
    /// The declarations of the names that it uses and does not set itself.
    pub declared: BTreeMap<String, DeclaredAs>,
}

/// A prompt template that an action uses.
#[derive(Clone, Debug)]
pub struct CollectedPrompt {
    pub name: &'static str,
    pub version: u32,
    pub at: ActionPosition,
}

/// A table of routes. It belongs to the action of `at`, else to the topic, the phase or the session.
#[derive(Clone, Debug)]
pub struct CollectedRoutes {
    pub on_exit: OnExit,
    pub at: ActionPosition,
    /// Whether it is a table `on_change`, whose reasons are the names of variables.
    pub is_on_change: bool,
}

/// The origin of a skill call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBy {
    /// The author of the document, at the place of the skill's id.
    Author,
    /// The kind of the project with this name; the fields of the action are the skill's inputs.
    Kind(String),
    /// A hook of the kind of the project with this name.
    Hook(String),
    /// The kind of the project with this name, or a hook of it, if it is requested when the script runs.
    Maybe(String),
}

#[derive(Clone, Debug)]
pub struct CollectedCall {
    pub by: CallBy,
    pub skill: Spanned<String>,
    pub inputs: Vec<SkillArgument>,
    /// The names of the used outputs of the skill.
    pub outputs: Vec<Spanned<String>>,
    pub at: ActionPosition,
}
