//! The tree of a session script as written (docs/language.md).

use std::sync::Arc;

use crate::script::declare::Declared;
use crate::script::fields::TextField;
use crate::script::interrupted::OnInterrupted;
use crate::script::kernel::WrittenKernel;
use crate::script::limits::{WrittenBudget, WrittenForEach, WrittenStrategy};
use crate::script::report::ReportFile;
use crate::script::route_parser::{OnChange, OnExit, WrittenTrigger};
use crate::script::skill::{SkillItem, WrittenSkill};
use crate::script::step_options::StepOptions;
use crate::script::tools::WrittenTool;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::YamlNode;
use crate::workflow::start::EarlierProgress;

#[derive(Clone, Debug)]
pub struct Script {
    /// The file it was read from.
    pub file: Arc<SourceFile>,
    pub id: Spanned<String>,
    pub name: Option<String>,
    pub scheme: Option<Spanned<String>>,
    pub goal: Option<TextField>,
    /// `who`: the name of the AI in prompts.
    pub who: Option<String>,
    /// `user`: the name of the person in prompts.
    pub user: Option<String>,
    pub model: Option<Spanned<String>>,
    pub history: History,
    pub declare: Vec<Declared>,
    pub budget: Option<WrittenBudget>,
    /// `kernel`: the kernel that runs code.
    pub kernel: Option<WrittenKernel>,
    /// `report`: the report that is written when a session ends.
    pub report: Option<ReportFile>,
    /// `tools`: the tools that its actions may call.
    pub tools: Vec<WrittenTool>,
    pub on_exit: Option<OnExit>,
    pub answer_tables: AnswerTables,
    pub triggers: Vec<WrittenTrigger>,
    pub skills: Vec<SkillItem>,
    pub phases: Vec<WrittenPhase>,
    /// For a state file, what ran before.
    pub earlier: EarlierProgress,
}

impl Script {
    /// Whether a planner may arrange the actions of any of its topics.
    pub fn is_orchestrated(&self) -> bool {
        let mut topics = self.phases.iter().flat_map(|phase| &phase.topics);
        topics.any(|topic| topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration))
    }

    /// The skills that are defined in the script itself.
    pub fn inline_skills(&self) -> Vec<&WrittenSkill> {
        let inline = self.skills.iter().filter_map(|item| match item {
            SkillItem::Inline(skill) => Some(skill.as_ref()),
            SkillItem::Path(_) => None,
        });
        inline.collect()
    }
}

/// `history: { messages, chars }`: how much of the conversation a prompt includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    pub messages: u32,
    pub chars: u32,
    /// Whether the oldest messages are left out of a long conversation even within these limits, to save tokens. A script that sets
    /// a limit gets what it asks for.
    pub economical: bool,
}

impl Default for History {
    fn default() -> Self {
        Self { messages: 20, chars: 8000, economical: true }
    }
}

#[derive(Clone, Debug)]
pub struct WrittenPhase {
    pub id: Spanned<String>,
    pub name: Option<String>,
    pub goal: Option<TextField>,
    pub declare: Vec<Declared>,
    pub condition: Option<TextField>,
    pub on_exit: Option<OnExit>,
    pub answer_tables: AnswerTables,
    pub topics: Vec<WrittenTopic>,
}

/// What a session, a phase or a topic listens for in the answers below it.
#[derive(Clone, Debug, Default)]
pub struct AnswerTables {
    /// `hear`: outputs that every answer is read for.
    pub hear: Vec<Arc<YamlNode>>,
    /// `on_change`: routes for variables whose value is replaced by another one.
    pub on_change: Option<OnChange>,
}

#[derive(Clone, Debug)]
pub struct WrittenTopic {
    pub id: Spanned<String>,
    pub name: Option<String>,
    pub goal: Option<TextField>,
    pub declare: Vec<Declared>,
    pub condition: Option<TextField>,
    pub on_exit: Option<OnExit>,
    pub answer_tables: AnswerTables,
    pub strategy: Option<WrittenStrategy>,
    /// `time_budget`, in minutes.
    pub time_budget: Option<Spanned<u32>>,
    /// `priority`, with its position.
    pub priority: Option<Spanned<&'static str>>,
    pub for_each: Option<WrittenForEach>,
    pub actions: Vec<RawAction>,
    /// The actions that run however the topic ends.
    pub finally: Vec<RawAction>,
}

/// An action as written. Its `config` is read according to its kind.
#[derive(Clone, Debug)]
pub struct RawAction {
    pub kind: Spanned<String>,
    pub id: Spanned<String>,
    pub condition: Option<TextField>,
    pub on_exit: Option<OnExit>,
    pub on_interrupted: OnInterrupted,
    pub options: StepOptions,
    /// The actions that undo it if the session fails or is cancelled after it.
    pub compensate: Vec<RawAction>,
    pub config: Option<Arc<YamlNode>>,
    /// Keys next to `config` that are not fields of an action. They are reported, and may be fields missing in `config`.
    pub sibling_keys: Vec<String>,
    pub span: Span,
}

impl RawAction {
    /// A placeholder for an invalid action, which is already reported. It is only searched for names that it sets.
    pub fn unread(node: &YamlNode) -> Self {
        let empty = Spanned { value: String::new(), span: node.span };
        let config = Some(Arc::new(node.clone()));
        let (id, beside, on_interrupted) = (empty.clone(), vec![], OnInterrupted::Ask);
        Self {
            kind: empty,
            id,
            condition: None,
            on_exit: None,
            on_interrupted,
            options: StepOptions::default(),
            compensate: vec![],
            config,
            sibling_keys: beside,
            span: node.span,
        }
    }
}

impl WrittenTopic {
    /// A placeholder for an invalid topic, which is already reported. It is only searched for names that it sets.
    pub fn unread(node: &YamlNode) -> Self {
        Self {
            id: Spanned { value: String::new(), span: node.span },
            name: None,
            goal: None,
            declare: vec![],
            condition: None,
            on_exit: None,
            answer_tables: AnswerTables::default(),
            strategy: None,
            time_budget: None,
            priority: None,
            for_each: None,
            actions: vec![RawAction::unread(node)],
            finally: vec![],
        }
    }
}
