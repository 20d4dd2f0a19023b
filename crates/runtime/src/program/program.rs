//! The checked tree. Only this runs: every reference in it resolves, every text and expression is compiled.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::notebook::kernel::contract::KernelSettings;
use crate::program::action::Action;
use crate::program::custom::CustomKind;
use crate::program::limits::{Budget, ForEach, Priority, Strategy};
use crate::program::routes::{RouteTable, Trigger};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::templates::Templates;
use bcc_lang::template::text::{AuthorTexts, Text};
use bcc_lang::value::scopes::DeclarationMap;

/// A script that can be run.
pub struct Program {
    pub file: Arc<SourceFile>,
    pub id: String,
    pub name: Option<String>,
    /// What the AI is called in prompts.
    pub who: String,
    /// What the person is called in prompts.
    pub user: String,
    pub goal: Option<Text>,
    /// A model of the configuration, when the script names one.
    pub model: Option<String>,
    /// How many messages a prompt may see.
    pub history_messages: usize,
    /// How many characters of them.
    pub history_chars: usize,
    /// Variables that are kept across the sessions of a user.
    pub globals: Arc<DeclarationMap>,
    pub declarations: Arc<DeclarationMap>,
    /// The phases, in order; never empty.
    pub phases: Vec<Phase>,
    pub routes: RouteTable,
    /// What interrupts the session whenever it holds, in the author's order.
    pub triggers: Vec<Trigger>,
    pub budget: Budget,
    pub custom: BTreeMap<String, CustomKind>,
    /// What it needs to be allowed before it begins (`allow` of bcc-script.toml), each with the first action that needs it.
    pub needs: BTreeMap<&'static str, Needing>,
    pub kernel: KernelSettings,
    /// Every skill that something may call or insert, by id: those of the script, of its paths and of the project.
    pub skills: BTreeMap<String, Skill>,
    /// The actions of the script that some route or trigger inserts, by id, without their conditions: these do not count
    /// where an action is inserted. What a skill inserts of its own stands in [`Skill::inserts`].
    pub inserts: BTreeMap<String, ProgramStep>,
    pub texts: AuthorTexts,
    /// The prompt templates that this program was checked against.
    pub templates: Arc<Templates>,
}

impl Program {
    pub fn has_sensitive(&self) -> bool {
        let topics = self.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.declarations);
        let phases = self.phases.iter().map(|phase| &phase.declarations);
        let skills = self.skills.values().map(|skill| &skill.inputs);
        let mut all = [&self.globals, &self.declarations].into_iter().chain(phases).chain(topics).chain(skills);
        all.any(|declarations| declarations.values().any(|declaration| declaration.sensitive))
    }
}

/// An action that may run only where the project allows it.
#[derive(Clone, Debug)]
pub struct Needing {
    pub action: String,
    /// The file that it stands in.
    pub file: Arc<SourceFile>,
    pub span: Span,
}

pub struct Phase {
    pub id: String,
    pub name: Option<String>,
    pub goal: Option<Text>,
    /// Variables of one visit of it.
    pub declarations: Arc<DeclarationMap>,
    /// Entered only when this holds.
    pub condition: Option<Expr>,
    /// The topics, in order; never empty.
    pub topics: Vec<Topic>,
    pub routes: RouteTable,
}

pub struct Topic {
    pub id: String,
    pub name: Option<String>,
    pub goal: Option<Text>,
    /// Variables of one visit of it.
    pub declarations: Arc<DeclarationMap>,
    /// Entered only when this holds.
    pub condition: Option<Expr>,
    pub steps: ProgramSteps,
    pub routes: RouteTable,
    pub strategy: Strategy,
    /// `time_budget`, in minutes.
    pub time_budget: Option<u32>,
    pub priority: Priority,
    pub for_each: Option<ForEach>,
}

/// A skill: actions that run in a scope of their own (docs/actions/).
#[derive(Clone)]
pub struct Skill {
    pub id: String,
    /// The declarations of its one scope: its inputs, and what its actions may set.
    pub inputs: Arc<DeclarationMap>,
    /// The names of its inputs, in the author's order; one without a value must be given.
    pub takes: Vec<String>,
    /// The names that a caller may take.
    pub outputs: Vec<String>,
    pub steps: ProgramSteps,
    /// Those of its own actions that a route inside of it inserts, as in [`Program::inserts`].
    pub inserts: BTreeMap<String, ProgramStep>,
    /// The file that holds it; none for one that is written in the script.
    pub file: Option<Arc<SourceFile>>,
}

/// A list of actions: those of a topic, or a block inside an action.
pub type ProgramSteps = Arc<Vec<ProgramStep>>;

#[derive(Clone)]
pub struct ProgramStep {
    /// Its id, unique in the session.
    pub id: String,
    pub kind: &'static str,
    /// The exit reasons with which it can end as it is configured, besides `error`, which every action has.
    pub exits: &'static [&'static str],
    /// Run only when this holds.
    pub condition: Option<Expr>,
    pub action: Arc<dyn Action>,
    pub routes: RouteTable,
    /// What becomes of an outside effect of it that was interrupted.
    pub on_interrupted: OnInterrupted,
}
