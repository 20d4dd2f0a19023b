//! The tree of a session script as written (LANGUAGE.md section 2).

use std::sync::Arc;

use crate::script::declare::Declared;
use crate::script::fields::Words;
use crate::script::interrupted::OnInterrupted;
use crate::script::kernel::WrittenKernel;
use crate::script::limits::{Budget, ForEach, Strategy};
use crate::script::routes::{OnExit, WrittenTrigger};
use crate::script::skill::{SkillItem, WrittenSkill};
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::Node;

/// A `session:` document.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file it was read from.
    pub file: Arc<SourceFile>,
    /// `session_id`.
    pub id: Spanned<String>,
    /// `session_name`.
    pub name: Option<String>,
    /// `template_scheme`.
    pub scheme: Option<Spanned<String>>,
    /// `global_goal`.
    pub goal: Option<Words>,
    /// `who`: what the AI is called in prompts.
    pub who: Option<String>,
    /// `user`: what the person is called in prompts.
    pub user: Option<String>,
    /// `model`: a model of the configuration.
    pub model: Option<Spanned<String>>,
    /// `history`.
    pub history: History,
    /// `declare`.
    pub declare: Vec<Declared>,
    /// `budget`.
    pub budget: Option<Budget>,
    /// `kernel`: what runs its code.
    pub kernel: Option<WrittenKernel>,
    /// `on_exit`.
    pub on_exit: Option<OnExit>,
    /// `triggers`.
    pub triggers: Vec<WrittenTrigger>,
    /// `skills`.
    pub skills: Vec<SkillItem>,
    /// `phases`.
    pub phases: Vec<WrittenPhase>,
}

impl Script {
    /// The skills that are written in the script itself.
    pub fn inline_skills(&self) -> Vec<&WrittenSkill> {
        let inline = self.skills.iter().filter_map(|item| match item {
            SkillItem::Inline(skill) => Some(skill.as_ref()),
            SkillItem::Path(_) => None,
        });
        inline.collect()
    }
}

/// `history: { messages, chars }`: how much of the talk a prompt may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The number of messages.
    pub messages: u32,
    /// The number of characters.
    pub chars: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { messages: 20, chars: 8000 }
    }
}

/// A phase as written.
#[derive(Clone, Debug)]
pub struct WrittenPhase {
    /// `phase_id`.
    pub id: Spanned<String>,
    /// `phase_name`.
    pub name: Option<String>,
    /// `phase_goal`.
    pub goal: Option<Words>,
    /// `declare`.
    pub declare: Vec<Declared>,
    /// `condition`.
    pub condition: Option<Words>,
    /// `on_exit`.
    pub on_exit: Option<OnExit>,
    /// `topics`.
    pub topics: Vec<WrittenTopic>,
}

/// A topic as written.
#[derive(Clone, Debug)]
pub struct WrittenTopic {
    /// `topic_id`.
    pub id: Spanned<String>,
    /// `topic_name`.
    pub name: Option<String>,
    /// `topic_goal`.
    pub goal: Option<Words>,
    /// `declare`.
    pub declare: Vec<Declared>,
    /// `condition`.
    pub condition: Option<Words>,
    /// `on_exit`.
    pub on_exit: Option<OnExit>,
    /// `strategy`.
    pub strategy: Option<Strategy>,
    /// `time_budget`, in minutes.
    pub time_budget: Option<Spanned<u32>>,
    /// `priority`, with where it stands.
    pub priority: Option<Spanned<&'static str>>,
    /// `for_each`.
    pub for_each: Option<ForEach>,
    /// `actions`.
    pub actions: Vec<RawAction>,
}

/// An action as written: its `config` is read by its kind.
#[derive(Clone, Debug)]
pub struct RawAction {
    /// `action_type`.
    pub kind: Spanned<String>,
    /// `action_id`.
    pub id: Spanned<String>,
    /// `condition`.
    pub condition: Option<Words>,
    /// `on_exit`.
    pub on_exit: Option<OnExit>,
    /// `on_interrupted`.
    pub on_interrupted: OnInterrupted,
    /// `config`, when there is one.
    pub config: Option<Arc<Node>>,
    /// Keys that stand beside `config` and are no fields of an action: they are reported, and may be what `config` lacks.
    pub beside: Vec<String>,
    /// The whole action.
    pub span: Span,
}

impl RawAction {
    /// What stands in the place of an action and is none, which is reported: it is only looked through for names that it sets.
    pub fn unread(node: &Node) -> Self {
        let nothing = Spanned { value: String::new(), span: node.span };
        let config = Some(Arc::new(node.clone()));
        let (id, beside, on_interrupted) = (nothing.clone(), vec![], OnInterrupted::Ask);
        Self { kind: nothing, id, condition: None, on_exit: None, on_interrupted, config, beside, span: node.span }
    }
}

impl WrittenTopic {
    /// What stands in the place of a topic and is none, which is reported: it is only looked through for names that it sets.
    pub fn of_unread(node: &Node) -> Self {
        Self {
            id: Spanned { value: String::new(), span: node.span },
            name: None,
            goal: None,
            declare: vec![],
            condition: None,
            on_exit: None,
            strategy: None,
            time_budget: None,
            priority: None,
            for_each: None,
            actions: vec![RawAction::unread(node)],
        }
    }
}
