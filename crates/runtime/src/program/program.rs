//! The checked program tree. Only this runs: every reference resolves, every text and expression is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::notebook::kernel::contract::KernelSettings;
use crate::program::action::Action;
use crate::program::custom::CustomKind;
use crate::program::limits::{Budget, ForEach, Priority, Strategy};
use crate::program::outcome::ExitReason;
use crate::program::route_table::{ChangeTable, RouteTable, Trigger};
use crate::program::tool_rule::ToolRule;
use crate::program::transcript::RecentTranscript;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::script::report::ReportFile;
use bcc_lang::script::step_options::StepOptions;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::templates::Templates;
use bcc_lang::template::text::{AuthorTexts, Text};
use bcc_lang::value::scopes::DeclarationMap;
use bcc_lang::workflow::start::EarlierProgress;
use bcc_lang::workflow::state_file::END;

/// A script that can be run.
pub struct Program {
    pub file: Arc<SourceFile>,
    pub id: String,
    pub name: Option<String>,
    /// The name of the AI in prompts.
    pub who: String,
    /// The name of the person in prompts.
    pub user: String,
    pub goal: Option<Text>,
    /// A model of the configuration, if the script names one.
    pub model: Option<String>,
    /// The maximum number of messages in a prompt.
    pub history_messages: usize,
    /// The maximum number of characters of these messages.
    pub history_chars: usize,
    /// Whether older messages are left out of a long conversation ([`RecentTranscript::new`]).
    pub history_economical: bool,
    /// Variables that are stored across the sessions of a user.
    pub globals: Arc<DeclarationMap>,
    pub declarations: Arc<DeclarationMap>,
    /// The phases, in order; never empty.
    pub phases: Vec<Phase>,
    pub routes: RouteTable,
    pub changes: ChangeTable,
    /// Every variable with a route in any table `on_change` of the script.
    pub watched_names: BTreeSet<String>,
    /// The triggers that can interrupt the session, in the author's order.
    pub triggers: Vec<Trigger>,
    pub budget: Budget,
    /// For a state file, what ran before its session began.
    pub earlier: EarlierProgress,
    pub custom: BTreeMap<String, CustomKind>,
    /// The permissions required before it starts (`allow` of bcc-script.toml), each with the first action that needs it.
    pub needs: BTreeMap<String, ActionNeedingPermission>,
    /// The behavior servers that its actions ask, each with the first action that does.
    pub servers: BTreeMap<String, ActionNeedingPermission>,
    pub kernel: KernelSettings,
    /// The report that is written when a session ends.
    pub report: Option<ReportFile>,
    /// The tools that its actions may call; nothing by default.
    pub tools: Vec<ToolRule>,
    /// Every skill that may be called or inserted, by id: those of the script, of its paths and of the project.
    pub skills: BTreeMap<String, Skill>,
    /// The actions of the script that a route or trigger inserts, by id, without their conditions, which do not apply to inserted
    /// actions. Those that a skill inserts are in [`Skill::inserts`].
    pub inserts: BTreeMap<String, ProgramStep>,
    /// The lists of the session that it only appends to: what a commit has written to them is never replaced.
    pub growing_lists: BTreeSet<String>,
    /// The expressions of the script and its skills that `validate` reports as errors: if one of them fails, so does the session, unless a
    /// route applies.
    pub mistaken_expressions: Vec<Expr>,
    pub texts: AuthorTexts,
    /// The prompt templates that this program was checked with.
    pub templates: Arc<Templates>,
}

impl Program {
    /// An empty transcript with the limits of this script.
    pub fn recent_transcript(&self) -> RecentTranscript {
        RecentTranscript::new(self.history_messages, self.history_chars, self.history_economical)
    }

    /// The patterns of the tools that its actions may call.
    pub fn tool_patterns(&self) -> Vec<String> {
        self.tools.iter().map(|rule| rule.pattern.clone()).collect()
    }

    /// Whether a `goto` with this id ends the session: it is `end`, and no part is called like that.
    pub(crate) fn ends_at(&self, id: &str) -> bool {
        let mut topics = self.phases.iter().flat_map(|phase| &phase.topics);
        let in_topic = |topic: &Topic| topic.id == id || topic.steps.iter().any(|step| step.id == id);
        id == END && !self.phases.iter().any(|phase| phase.id == id) && !topics.any(in_topic)
    }

    /// Whether any part of it may ask a model. The answer is yes where only a run could tell.
    pub fn asks_models(&self) -> bool {
        let topics = || self.phases.iter().flat_map(|phase| &phase.topics);
        let steps = topics().flat_map(|topic| [&topic.steps, &topic.finally]);
        let skills = self.skills.values().map(|skill| &skill.steps);
        let inserted = self.inserts.values().chain(self.skills.values().flat_map(|skill| skill.inserts.values()));
        !self.triggers.is_empty()
            || topics().any(|topic| topic.strategy.orchestration)
            || steps.chain(skills).any(|steps| steps.iter().any(asks_model))
            || inserted.into_iter().any(asks_model)
    }

    /// Whether something happens when an action ends with `error`: it may do without what it needs.
    pub fn routes_errors(&self) -> bool {
        routes_errors(&self.routes, &self.phases)
    }

    pub(crate) fn has_sensitive(&self) -> bool {
        let topics = self.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.declarations);
        let phases = self.phases.iter().map(|phase| &phase.declarations);
        let skills = self.skills.values().map(|skill| &skill.inputs);
        let mut all = [&self.globals, &self.declarations].into_iter().chain(phases).chain(topics).chain(skills);
        all.any(|declarations| declarations.values().any(|declaration| declaration.sensitive))
    }
}

/// Whether a script with these routes and phases has a route for `error`.
pub fn routes_errors(routes: &RouteTable, phases: &[Phase]) -> bool {
    let routes_error = |table: &RouteTable| table.get(ExitReason::Error).is_some();
    let topics = || phases.iter().flat_map(|phase| &phase.topics);
    routes_error(routes)
        || phases.iter().any(|phase| routes_error(&phase.routes))
        || topics().any(|topic| routes_error(&topic.routes) || steps_route_errors(&topic.steps, &routes_error))
}

fn steps_route_errors(steps: &ProgramSteps, routes_error: &impl Fn(&RouteTable) -> bool) -> bool {
    let routed = |step: &ProgramStep| {
        routes_error(&step.routes) || step.lists().into_iter().any(|steps| steps_route_errors(steps, routes_error))
    };
    steps.iter().any(routed)
}

fn asks_model(step: &ProgramStep) -> bool {
    step.action.asks_model()
        || step.action.watched().is_some()
        || step.lists().into_iter().any(|steps| steps.iter().any(asks_model))
}

/// An action that needs a permission of the project, or a server.
#[derive(Clone, Debug)]
pub struct ActionNeedingPermission {
    pub action: String,
    /// The file that contains it.
    pub file: Arc<SourceFile>,
    pub span: Span,
}

pub struct Phase {
    pub id: String,
    pub name: Option<String>,
    pub goal: Option<Text>,
    /// Variables of one visit of the phase.
    pub declarations: Arc<DeclarationMap>,
    /// Entered only if this holds.
    pub condition: Option<Expr>,
    /// The topics, in order; never empty.
    pub topics: Vec<Topic>,
    pub routes: RouteTable,
    pub changes: ChangeTable,
}

pub struct Topic {
    pub id: String,
    pub name: Option<String>,
    pub goal: Option<Text>,
    /// Variables of one visit of the topic.
    pub declarations: Arc<DeclarationMap>,
    /// Entered only if this holds.
    pub condition: Option<Expr>,
    pub steps: ProgramSteps,
    pub routes: RouteTable,
    pub changes: ChangeTable,
    pub strategy: Strategy,
    /// `time_budget`, in minutes.
    pub time_budget: Option<u32>,
    pub priority: Priority,
    pub for_each: Option<ForEach>,
    /// The actions that run however the topic ends.
    pub finally: ProgramSteps,
}

/// A skill: actions that run in their own scope (docs/actions/).
#[derive(Clone)]
pub struct Skill {
    pub id: String,
    /// The declarations of its only scope: its inputs, and the variables that its actions may set.
    pub inputs: Arc<DeclarationMap>,
    /// The names of its inputs, in the author's order; inputs without a default value are required.
    pub input_names: Vec<String>,
    /// The names of the outputs that a caller may use.
    pub outputs: Vec<String>,
    pub steps: ProgramSteps,
    /// The actions that a route inside the skill inserts, as in [`Program::inserts`].
    pub inserts: BTreeMap<String, ProgramStep>,
    /// The file that contains it; none for a skill that is defined in the script.
    pub file: Option<Arc<SourceFile>>,
}

/// A list of actions: those of a topic, or a block inside an action.
pub type ProgramSteps = Arc<Vec<ProgramStep>>;

#[derive(Clone)]
pub struct ProgramStep {
    /// Its id, unique in the session.
    pub id: String,
    pub kind: &'static str,
    /// Its possible exit reasons as configured, besides `error`, which every action has.
    pub exits: &'static [&'static str],
    /// Runs only if this holds.
    pub condition: Option<Expr>,
    pub action: Arc<dyn Action>,
    pub routes: RouteTable,
    /// How an interrupted external effect of it is handled.
    pub on_interrupted: OnInterrupted,
    pub options: StepOptions,
    /// The actions that undo it if the session fails or is cancelled after it.
    pub compensate: ProgramSteps,
}

impl ProgramStep {
    /// Every list of steps inside it: those of its action, and its compensation.
    pub fn lists(&self) -> Vec<&ProgramSteps> {
        let mut lists = self.action.blocks();
        lists.extend(Some(&self.compensate).filter(|steps| !steps.is_empty()));
        lists
    }
}
