//! The action kinds and [`KINDS`], the list of all of them. Each kind has its own file or is a row of a table.

pub mod ai_act;
pub mod ai_ask;
pub mod ai_say;
pub mod ai_think;
pub mod approval;
pub mod behavior_loop;
pub mod behaviors;
pub(crate) mod call_spans;
pub mod calling;
pub mod collect;
pub mod command;
pub mod condition;
pub mod conversation;
pub mod failure;
pub mod file_path;
pub mod monitors;
pub mod notebook;
pub mod parallel;
pub(crate) mod plans;
pub mod project_kind;
pub mod read_file;
pub mod requirement;
pub mod set;
pub(crate) mod structured;
pub mod tools;
pub mod use_skill;
pub mod wait;
pub mod write_file;

use std::collections::BTreeMap;

use crate::program::custom::CustomKind;
use crate::program::kind::Kind;

/// Every kind that a script may use. A new kind needs a file (or a row of `notebook/plain.rs`), a line here, a schema and a page.
pub static KINDS: &[&dyn Kind] = &[
    &ai_say::AiSay,
    &ai_ask::AiAsk,
    &collect::CollectKind,
    &ai_think::AiThink,
    &ai_act::AiAct,
    &plans::kind::CREATE_PLAN,
    &plans::kind::LIST_PLANS,
    &plans::kind::EXECUTE_PLAN,
    &plans::kind::DELETE_PLAN,
    &plans::kind::CREATE_TASK,
    &plans::kind::UPDATE_TASK,
    &plans::kind::UPDATE_TASK_INSTRUCTION,
    &plans::kind::MOVE_TASK,
    &plans::kind::DELETE_TASK,
    &plans::kind::SHOW_TASKS,
    &plans::kind::QUERY_STATUS,
    &plans::kind::RERUN_TASK,
    &plans::kind::DECOMPOSE_TASK,
    &plans::kind::REQUEST_SUBGRAPH,
    &set::SetKind,
    &condition::Condition,
    &parallel::ParallelKind,
    &approval::ApprovalKind,
    &wait::WaitKind,
    &use_skill::UseSkill,
    &command::CommandKind,
    &tools::tool::ToolKind,
    &read_file::ReadFileKind,
    &write_file::WriteFileKind,
    &notebook::plain::ADD,
    &notebook::exec::ExecKind,
    &notebook::plain::IS_THINKING,
    &notebook::plain::FINISH_THINKING,
    &notebook::plain::NEW_CHAPTER,
    &notebook::plain::NEW_SECTION,
    &notebook::plain::UPDATE_TITLE,
    &notebook::plain::UPDATE_WORKFLOW,
    &notebook::plain::UPDATE_STAGE_STEPS,
    &notebook::plain::END_PHASE,
    &notebook::plain::NEXT_EVENT,
    &behavior_loop::BehaviorLoop,
];

/// The JSON Schema of the `config` of every kind that a project defines.
pub const PROJECT_SCHEMA: &str = include_str!("../../../../schemas/parts/kinds/project.json");

/// The kinds that a project defines, which are used together with [`KINDS`] when its scripts are checked.
pub fn project_kinds(kinds: &BTreeMap<String, CustomKind>) -> Vec<Box<dyn Kind>> {
    let kind = |kind| Box::new(project_kind::ProjectKind::new(kind)) as Box<dyn Kind>;
    kinds.values().map(kind).collect()
}
