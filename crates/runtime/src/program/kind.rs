//! A kind of action: it describes itself and turns its configuration into an [`Action`].

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::program::action::Action;
use crate::program::custom::CustomKind;
use crate::program::monitor::Monitor;
use crate::program::output::OutputVariable;
use crate::program::program::ProgramSteps;
use crate::program::prompt::PromptOf;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::text::Text;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::shape::BaseSchema;

/// What every kind says of itself.
pub struct KindInfo {
    /// The name that an author writes as `action_type`.
    pub name: &'static str,
    /// The JSON Schema of its `config`, for editors.
    pub schema: &'static str,
    /// Its page of documentation, as markdown.
    pub page: &'static str,
    /// The exit reasons with which an action of this kind can end, besides `error`, which every kind has
    /// (docs/routes.md).
    pub exits: &'static [&'static str],
}

/// A registered kind. Everything about it is found through this trait: nothing else in the crate names a kind.
pub trait Kind: Sync {
    fn about(&self) -> KindInfo;

    fn name(&self) -> &'static str {
        self.about().name
    }

    fn schema(&self) -> &'static str {
        self.about().schema
    }

    fn page(&self) -> &'static str {
        self.about().page
    }

    fn exits(&self) -> &'static [&'static str] {
        self.about().exits
    }

    /// What its templates get; `None` for a kind that asks no model.
    fn prompt(&self) -> Option<PromptOf> {
        None
    }

    /// Templates that its actions are asked with under names of their own, `<name>_v<N>.md`, and what these get.
    fn prompts(&self) -> &'static [(&'static str, PromptOf)] {
        &[]
    }

    /// What looks at the answered turns of its actions.
    fn monitor(&self) -> Option<&'static dyn Monitor> {
        None
    }

    /// Whether its actions may ask a model.
    fn asks(&self) -> bool {
        self.prompt().is_some() || !self.prompts().is_empty()
    }

    /// Whether an action of it that asks a model begins with that, and does not ask only about what went wrong.
    fn asks_first(&self) -> bool {
        true
    }

    /// Reads and checks its `config`. Unknown keys are reported by the caller, which finishes `fields`.
    ///
    /// Gives `None` when something was wrong; all that was found is reported through `fields`.
    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>>;
}

/// What a kind tells of one action, for rules that look at more than its config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// `max_rounds`; 1 for a kind that has no rounds.
    pub max_rounds: u32,
    /// Whether it never ends without an answer of the person.
    pub listens: bool,
    /// Where the author said that an output must not be null: beside the outputs, or on one of them.
    pub required: Vec<Span>,
    /// The exit reasons that it can give as it is configured, where these are fewer than [`KindInfo::exits`].
    pub exits: Option<&'static [&'static str]>,
    /// The fewest calls of a model that it can do with.
    pub least_calls: u32,
    /// Whether it always goes elsewhere, or through actions that stand inside of it: never straight on.
    pub always_branches: bool,
    pub outputs: usize,
    /// What the project must allow before it may run (`allow` of bcc-script.toml): `exec`, `command`.
    pub needs: Vec<&'static str>,
}

/// An input that a call gives to a skill.
#[derive(Clone, Debug)]
pub struct SkillArgument {
    pub name: Spanned<String>,
    pub value: Arc<YamlNode>,
}

/// What a kind may ask of the checker while its configuration is checked.
pub trait KindChecker {
    fn describe(&mut self, described: Described);

    /// A place that leads to the topic or phase of this id.
    fn goto(&mut self, id: &Spanned<String>);

    /// A call of a skill, with the names that it is given and those of its outputs that are taken.
    fn skill(&mut self, skill: &Spanned<String>, inputs: Vec<SkillArgument>, outputs: Vec<Spanned<String>>);

    /// A kind of the project that this action runs, with its hooks; `given` and `taken` as for [`KindChecker::skill`], for what
    /// it does itself.
    fn runs(&mut self, kind: &CustomKind, given: Vec<SkillArgument>, taken: Vec<Spanned<String>>);

    /// The action may run any kind of the project: whoever tells it what to do decides when it runs.
    fn runs_any_kind(&mut self);

    /// Compiles an author text; older placeholders are read, unknown names reported.
    fn text(&mut self, words: &TextField) -> Option<Text>;

    /// Compiles a text that is code of another language: `{{ name }}` stands for a value there too, and nothing else does.
    fn code(&mut self, words: &TextField) -> Option<Text>;

    /// Compiles an expression; unknown names are reported.
    fn expression(&mut self, words: &TextField) -> Option<Expr>;

    /// Compiles the expression that stands in `within` (bytes of the decoded text) of `words`.
    fn expression_within(&mut self, words: &TextField, within: Range<usize>) -> Option<Expr>;

    fn steps(&mut self, nodes: &[Arc<YamlNode>]) -> ProgramSteps;

    /// From here on `name` may have a value. A `scope` says where it is written when it is declared nowhere.
    fn learn(&mut self, name: &Spanned<String>, scope: Option<Scope>);

    /// What an action extracts, as written, before it is learned.
    fn extracts(&mut self, name: &Spanned<String>, output: &OutputVariable);

    /// A variable that is set to what stands at `span`, before it is learned; with the value when it is a constant.
    fn sets(&mut self, name: &Spanned<String>, constant: Option<Value>, span: Span);

    /// The type and the choices that `name` is declared with, when it is declared here.
    fn declared(&self, name: &str) -> Option<(Option<DeclaredType>, Vec<Value>)>;

    /// Reports `name` when it is not known here.
    fn must_know(&mut self, name: &Spanned<String>);

    /// Reports a template that does not exist or uses a name that it does not get. `prompt` is what it
    /// gets beyond variables and the engine's names; `at` is where the author chose it.
    fn template(&mut self, name: &'static str, version: u32, prompt: PromptOf, at: &Fields<'_>);

    /// Whether there is such a template. Those of monitors are not among what a session of an earlier release began with.
    fn has_template(&self, name: &str, version: u32) -> bool;

    /// The words that the template has for a reply that cannot be read, when it has some.
    fn template_fallback(&self, name: &'static str, version: u32) -> Option<String>;

    /// The pinned JSON Schema of a kind's reply: the one that its template asks for (`output_schema`), else the kind's own.
    /// What is wrong with it is reported at `at`.
    fn reply_schema(&mut self, kind: &'static str, version: u32, at: &Fields<'_>) -> Option<Arc<BaseSchema>>;
}
