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
use bcc_lang::source::yaml::Node;
use bcc_lang::template::text::Text;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_runtime::program::kind::{Described, Given};
use bcc_runtime::program::output::Output;

/// Everything that was seen.
#[derive(Debug)]
pub struct Seen {
    /// The actions; one that stands inside another comes after it.
    pub actions: Vec<ActionFact>,
    /// Where names are declared and written.
    pub definitions: Vec<Definition>,
    /// Where names are used.
    pub uses: Vec<Use>,
    /// Those of them that were not known where the walk came to them.
    pub unknown: Vec<UnknownUse>,
    /// What actions extract.
    pub outputs: Vec<OutputFact>,
    /// What is set.
    pub sets: Vec<SetFact>,
    /// The expressions that could be read.
    pub expressions: Vec<ExpressionFact>,
    /// The author's texts that could be read.
    pub texts: Vec<TextFact>,
    /// The templates that actions take.
    pub prompts: Vec<PromptFact>,
    /// The tables of routes.
    pub routes: Vec<RoutesFact>,
    /// Where actions themselves go to another topic or phase.
    pub gotos: Vec<(Spanned<String>, At)>,
    /// The triggers.
    pub triggers: Vec<WrittenTrigger>,
    /// The calls of skills: by `use_skill`, and by kinds of the project.
    pub calls: Vec<CallFact>,
    /// The parts of the document, with the ticks of the clock between which the walk was in each.
    pub parts: BTreeMap<Body, Range<usize>>,
    /// Counts what the walk came to: what has a smaller number stands before.
    pub clock: usize,
    /// See [`crate::facts::Facts::whole`].
    pub whole: bool,
}

impl Seen {
    /// The next number of the clock.
    pub fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    /// The walk enters a part.
    pub fn enter(&mut self, body: Body) {
        let now = self.tick();
        self.parts.insert(body, now..usize::MAX);
    }

    /// The walk leaves a part.
    pub fn leave(&mut self, body: Body) {
        let now = self.tick();
        if let Some(part) = self.parts.get_mut(&body) {
            part.end = now;
        }
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            actions: vec![],
            definitions: vec![],
            uses: vec![],
            unknown: vec![],
            outputs: vec![],
            sets: vec![],
            expressions: vec![],
            texts: vec![],
            prompts: vec![],
            routes: vec![],
            gotos: vec![],
            triggers: vec![],
            calls: vec![],
            parts: BTreeMap::new(),
            clock: 0,
            whole: true,
        }
    }
}

/// The part of a document in which something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Beside the phases.
    Session,
    /// In a phase, beside its topics: the phase's number.
    Phase(usize),
    /// In a topic: the numbers of its phase and of itself in the phase.
    Topic(usize, usize),
    /// In a skill of this document: its number in [`crate::facts::Facts::skills`].
    Skill(usize),
}

/// Where in the document something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The part.
    pub body: Body,
    /// The action, as a number in [`Seen::actions`]; none beside the actions.
    pub action: Option<usize>,
}

/// An action.
#[derive(Clone, Debug)]
pub struct ActionFact {
    /// `action_id`; empty when it is missing.
    pub id: Spanned<String>,
    /// `action_type`, whether or not there is such a kind.
    pub kind: Spanned<String>,
    /// The whole action.
    pub span: Span,
    /// The part of the document in which it stands.
    pub body: Body,
    /// The action inside of which it stands, as a number in [`Seen::actions`].
    pub parent: Option<usize>,
    /// The list in which it stands: of two lists inside of one action, the later one has the larger number.
    pub block: usize,
    /// Its `condition`, as a number in [`Seen::expressions`].
    pub condition: Option<usize>,
    /// Whether it has a `condition` at all, read or not.
    pub conditional: bool,
    /// Its routes.
    pub on_exit: Option<OnExit>,
    /// What its kind said about it.
    pub described: Option<Described>,
    /// Whether its config is sound.
    pub sound: bool,
    /// The ticks of the clock between which the walk was in it.
    pub order: Range<usize>,
}

/// How a name gets a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
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
    /// The name.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Where in the document.
    pub at: At,
    /// How.
    pub how: How,
    /// The scope: where it is declared, or what a `scope:` beside an output says.
    pub scope: Option<Scope>,
    /// The scope that it goes to: the one above, else that where the name is declared, else the session.
    pub to: Scope,
    /// When the walk came to it.
    pub order: usize,
    /// The declared type.
    pub declared: Option<DeclaredType>,
    /// For a declaration: whether it has a value that is not null.
    pub has_value: bool,
}

/// By what a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A text.
    Text,
    /// An expression.
    Expression,
    /// A field that takes names alone, as `input_variables`.
    Field,
    /// A prompt template.
    Prompt,
}

/// A place that uses a name.
#[derive(Clone, Debug)]
pub struct Use {
    /// The name.
    pub name: String,
    /// Where it stands. For a prompt, the action that takes it.
    pub place: Place,
    /// Where in the document.
    pub at: At,
    /// By what.
    pub by: By,
    /// Whether it works without the name: it is only asked for, or has a stand-in.
    pub optional: bool,
    /// How many definitions were there before it.
    pub defined_before: usize,
    /// When the walk came to it.
    pub order: usize,
}

/// A use of a name that nothing had defined when the walk came to it.
#[derive(Clone, Debug)]
pub struct UnknownUse {
    /// The use, as a number in [`Seen::uses`].
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
    pub output: Output,
    /// Where its name stands.
    pub span: Span,
    /// What its name is declared as there, when it is declared.
    pub declared: Option<DeclaredAs>,
    /// Where in the document.
    pub at: At,
}

/// A variable that is set, by an action or a route.
#[derive(Clone, Debug)]
pub struct SetFact {
    /// The variable.
    pub name: Spanned<String>,
    /// The value, when it is a constant.
    pub constant: Option<Value>,
    /// Where the value stands.
    pub span: Span,
    /// What the variable is declared as there, when it is declared.
    pub declared: Option<DeclaredAs>,
    /// Where in the document.
    pub at: At,
    /// How many definitions were there before it: the same number for all that one `set` sets.
    pub defined_before: usize,
}

/// Where a name is used. The span of a part of a scalar is looked for only when something is reported.
#[derive(Clone, Debug)]
pub enum Place {
    /// These bytes of the decoded text of a scalar.
    Within(Arc<Node>, Range<usize>),
    /// This place.
    Whole(Span),
}

impl Place {
    /// Where it stands in the file.
    pub fn span(&self, file: &SourceFile) -> Span {
        match self {
            Self::Within(node, range) => locate_bytes(file, node, range.clone()),
            Self::Whole(span) => *span,
        }
    }
}

/// What an expression is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It decides: `condition`, `when`.
    Condition,
    /// It is the value of a variable.
    Value,
    /// It is a list to go through.
    List,
}

/// What a name is declared as: its type, and the values that it may take.
pub type DeclaredAs = (Option<DeclaredType>, Vec<Value>);

/// An expression.
#[derive(Clone, Debug)]
pub struct ExpressionFact {
    /// The expression. Its ranges count in its own source.
    pub expression: Expr,
    /// The scalar in which it stands.
    pub node: Arc<Node>,
    /// Where in the decoded text of the scalar its source begins, in bytes.
    pub start: usize,
    /// What it is there for.
    pub role: Role,
    /// Where in the document.
    pub at: At,
    /// What its names are declared as, for those that are declared.
    pub declared: BTreeMap<String, DeclaredAs>,
}

impl ExpressionFact {
    /// Where a part of it, in bytes of its source, stands in the file.
    pub fn span(&self, file: &SourceFile, range: &Range<usize>) -> Span {
        locate_bytes(file, &self.node, range.start + self.start..range.end + self.start)
    }
}

/// A text of the author.
#[derive(Clone, Debug)]
pub struct TextFact {
    /// The text.
    pub text: Text,
    /// The scalar.
    pub node: Arc<Node>,
    /// Where in the document.
    pub at: At,
}

/// A prompt template that an action takes.
#[derive(Clone, Debug)]
pub struct PromptFact {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: u32,
    /// Where in the document.
    pub at: At,
}

/// A table of routes, with what it belongs to: the action of `at`, else the topic, the phase or the session.
#[derive(Clone, Debug)]
pub struct RoutesFact {
    /// The table.
    pub on_exit: OnExit,
    /// Where in the document.
    pub at: At,
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

/// A call of a skill by an action.
#[derive(Clone, Debug)]
pub struct CallFact {
    /// Who names the skill.
    pub by: CallBy,
    /// The skill.
    pub skill: Spanned<String>,
    /// What is given.
    pub inputs: Vec<Given>,
    /// The names of the skill's outputs that are taken.
    pub outputs: Vec<Spanned<String>>,
    /// Where in the document.
    pub at: At,
}
