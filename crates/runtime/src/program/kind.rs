//! The `Kind` trait: a kind of action describes itself and turns its configuration into an [`Action`].

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::program::action::Action;
use crate::program::custom::CustomKind;
use crate::program::monitor::Monitor;
use crate::program::output::OutputVariable;
use crate::program::program::ProgramSteps;
use crate::program::prompt::PromptNames;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::front_matter::FallbackTexts;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::text::Text;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::Scope;
use bcc_llm::reply::shape::BaseSchema;

/// The static description of a kind.
pub struct KindInfo {
    /// The name as written in `action_type`.
    pub name: &'static str,
    /// The JSON Schema of its `config`, for editors.
    pub schema: &'static str,
    /// Its page of documentation, as markdown.
    pub page: &'static str,
    /// The exit reasons of actions of this kind, besides `error`, which every kind has (docs/routes.md).
    pub exits: &'static [&'static str],
}

/// A registered kind. The rest of the crate accesses kinds only through this trait and never by name.
pub trait Kind: Sync {
    fn info(&self) -> KindInfo;

    fn name(&self) -> &'static str {
        self.info().name
    }

    fn schema(&self) -> &'static str {
        self.info().schema
    }

    fn page(&self) -> &'static str {
        self.info().page
    }

    fn exits(&self) -> &'static [&'static str] {
        self.info().exits
    }

    /// What its templates receive; `None` for a kind that calls no model.
    fn prompt(&self) -> Option<PromptNames> {
        None
    }

    /// Additional templates of its actions, `<name>_v<N>.md`, and what they receive.
    fn prompts(&self) -> &'static [(&'static str, PromptNames)] {
        &[]
    }

    /// The monitor of its answered turns.
    fn monitor(&self) -> Option<&'static dyn Monitor> {
        None
    }

    /// Whether its actions may call a model.
    fn asks(&self) -> bool {
        self.prompt().is_some() || !self.prompts().is_empty()
    }

    /// Whether an action that calls a model starts with that call, rather than calling it only after a problem.
    fn asks_first(&self) -> bool {
        true
    }

    /// Whether its actions can be part of a branch of a `parallel`: they neither talk to the person nor use the notebook.
    fn runs_in_branches(&self) -> bool {
        false
    }

    /// Whether its actions may say something to the person, or ask somebody something.
    fn may_speak(&self) -> bool {
        !self.runs_in_branches()
    }

    /// The options of its actions next to `config` (`timeout`, `retry`). Kinds with effects outside the session have them.
    fn step_options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads and checks its `config`. Unknown keys are reported by the caller, which finishes `fields`.
    ///
    /// Returns `None` if something was wrong; all problems are reported through `fields`.
    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>>;
}

/// The properties of one action, for rules that check more than its config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionProperties {
    /// `max_rounds`; 1 for a kind that has no rounds.
    pub max_rounds: u32,
    /// Whether it always needs an answer of the person to end.
    pub needs_answer: bool,
    /// Where the author requires an output not to be null: next to the outputs, or on one of them.
    pub required: Vec<Span>,
    /// Its possible exit reasons as configured, if these are fewer than [`KindInfo::exits`].
    pub exits: Option<&'static [&'static str]>,
    /// The minimum number of model calls.
    pub min_calls: u32,
    /// Whether it always jumps elsewhere or runs nested actions, and never continues directly.
    pub always_branches: bool,
    /// Whether it picks one of several cases and says nothing about what happens when none of them applies.
    pub lacks_default: bool,
    /// If all the lists of actions in it run at the same time: for each of them, the numbers of those that come before it.
    pub concurrent: Vec<Vec<usize>>,
    pub outputs: usize,
    /// The permissions that it needs (`allow` of bcc-script.toml): `exec`, `command`, `command:git`, …
    pub needs: Vec<String>,
    /// The behavior server that it asks.
    pub server: Option<String>,
    /// The tools that it calls, which the script must permit.
    pub tools: Vec<Spanned<String>>,
}

/// An argument of a call of a skill.
#[derive(Clone, Debug)]
pub struct SkillArgument {
    pub name: Spanned<String>,
    pub value: Arc<YamlNode>,
}

/// The operations of the checker that a kind uses while its configuration is checked.
pub trait KindChecker {
    fn describe(&mut self, described: ActionProperties);

    /// Registers a jump to the topic, phase or action with this id.
    fn goto(&mut self, id: &Spanned<String>);

    /// Registers that the action can send the session back to this earlier action of the same list.
    fn rewind(&mut self, id: &Spanned<String>);

    /// Registers a call of a skill, with the given inputs and the names of the outputs that are used.
    fn skill(&mut self, skill: &Spanned<String>, inputs: Vec<SkillArgument>, outputs: Vec<Spanned<String>>);

    /// Registers that this action runs a kind of the project, with its hooks; `given` and `taken` as for [`KindChecker::skill`], for
    /// the main body of the kind.
    fn runs(&mut self, kind: &CustomKind, given: Vec<SkillArgument>, taken: Vec<Spanned<String>>);

    /// Registers that the action may run any kind of the project, because its instructions come at run time.
    fn runs_any_kind(&mut self);

    /// Compiles an author text; legacy placeholders are accepted, unknown names reported.
    fn text(&mut self, words: &TextField) -> Option<Text>;

    /// Compiles a text that is code of another language: only `{{ name }}` is replaced by a value there.
    fn code(&mut self, words: &TextField) -> Option<Text>;

    /// Compiles an expression; unknown names are reported.
    fn expression(&mut self, words: &TextField) -> Option<Expr>;

    /// Compiles the expression in the range `within` (bytes of the decoded text) of `words`.
    fn expression_within(&mut self, words: &TextField, within: Range<usize>) -> Option<Expr>;

    fn steps(&mut self, nodes: &[Arc<YamlNode>]) -> ProgramSteps;

    /// From this point on `name` may have a value. `scope` is where it is written if it is not declared.
    fn may_have_value(&mut self, name: &Spanned<String>, scope: Option<Scope>);

    /// Registers an output that an action extracts, as written, before `learn` is called for it.
    fn extracts(&mut self, name: &Spanned<String>, output: &OutputVariable);

    /// The outputs that every answer at this point is read for: those of the `hear` lists around it, the innermost of each name.
    fn hear_outputs(&self) -> Vec<OutputVariable>;

    /// Registers an assignment of the value at `span`, before `learn` is called for the variable; `constant` if the value is one.
    fn sets(&mut self, name: &Spanned<String>, constant: Option<Value>, span: Span);

    /// The declared type and choices of `name`, if it is declared.
    fn declared(&self, name: &str) -> Option<(Option<DeclaredType>, Vec<Value>)>;

    /// Reports `name` if it is not known at this point.
    fn require_known(&mut self, name: &Spanned<String>);

    /// Reports a template that does not exist or uses a name that it does not receive. `prompt` lists the names beyond variables and
    /// the engine's names; `at` is where the author chose it.
    fn template(&mut self, name: &'static str, version: u32, prompt: PromptNames, at: &Fields<'_>);

    /// Whether the template exists. Sessions of earlier releases have no monitor templates.
    fn has_template(&self, name: &str, version: u32) -> bool;

    /// The texts of the template that are sent instead of a reply.
    fn template_fallbacks(&self, name: &'static str, version: u32) -> FallbackTexts;

    /// The language in which the template is written.
    fn template_language(&self, name: &'static str, version: u32) -> PromptLanguage;

    /// The pinned JSON Schema of a kind's reply: the one that its template requests (`output_schema`), else the kind's own. Errors in
    /// it are reported at `at`.
    fn reply_schema(&mut self, kind: &'static str, version: u32, at: &Fields<'_>) -> Option<Arc<BaseSchema>>;
}
