//! The kinds of action, one file each, and [`KINDS`], the one list of them.

pub mod ai_ask;
pub mod ai_say;
pub mod ai_think;
pub mod behavior_loop;
pub mod behaviors;
pub mod calling;
pub mod condition;
pub mod conversation;
pub mod monitors;
pub mod notebook;
pub mod project_kind;
pub mod set;
pub mod use_skill;

use std::collections::BTreeMap;

use crate::program::custom::CustomKind;
use crate::program::kind::Kind;

/// Every kind that a script may use. Adding one is a file, a line here, a schema and a page.
pub static KINDS: &[&dyn Kind] = &[
    &ai_say::AiSay,
    &ai_ask::AiAsk,
    &ai_think::AiThink,
    &set::Set,
    &condition::Condition,
    &use_skill::UseSkill,
    &notebook::add::Add,
    &notebook::exec::Exec,
    &notebook::is_thinking::IsThinking,
    &notebook::finish_thinking::FinishThinking,
    &notebook::new_chapter::NewChapter,
    &notebook::new_section::NewSection,
    &notebook::update_title::UpdateTitle,
    &notebook::update_workflow::UpdateWorkflow,
    &notebook::update_stage_steps::UpdateStageSteps,
    &notebook::end_phase::EndPhase,
    &notebook::next_event::NextEvent,
    &behavior_loop::BehaviorLoop,
];

/// The JSON Schema of the `config` of every kind that a project makes.
pub const PROJECT_SCHEMA: &str = include_str!("../../../../schemas/parts/kinds/project.json");

/// The kinds that a project makes, to stand beside [`KINDS`] where its scripts are checked.
pub fn project_kinds(kinds: &BTreeMap<String, CustomKind>) -> Vec<Box<dyn Kind>> {
    let kind = |kind| Box::new(project_kind::ProjectKind::new(kind)) as Box<dyn Kind>;
    kinds.values().map(kind).collect()
}
