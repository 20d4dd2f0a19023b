//! The table of operations that a model may write, and that authors may use as actions.

use bcc_lang::template::language::PromptLanguage;
use serde_json::{Value, json};

/// The group of an operation: `kind` in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationGroup {
    Plan,
    Task,
    Context,
    System,
    Tool,
}

impl OperationGroup {
    /// The name in replies.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan_operation",
            Self::Task => "task_operation",
            Self::Context => "context_request",
            Self::System => "system_operation",
            Self::Tool => "tool_operation",
        }
    }
}

/// An operation.
#[derive(Debug)]
pub(crate) struct OperationInfo {
    pub name: &'static str,
    pub group: OperationGroup,
    /// The required parameters, as shown to models and people.
    pub required: &'static str,
    pub optional: &'static str,
    /// What it does, in Chinese and in English.
    notes: [&'static str; 2],
    /// Whether a script must list it in `operations`, because it deletes or starts much at once.
    pub must_be_listed: bool,
}

impl OperationInfo {
    /// The operation with this name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.name == name)
    }

    /// What it does, in a language of prompts.
    pub(crate) fn note(&self, language: PromptLanguage) -> &'static str {
        let [zh, en] = self.notes;
        match language {
            PromptLanguage::Zh => zh,
            PromptLanguage::En => en,
        }
    }

    /// The operation for a prompt.
    pub(crate) fn to_json(&self, language: PromptLanguage) -> Value {
        json!({
            "kind": self.group.name(), "name": self.name, "required": self.required, "optional": self.optional,
            "note": self.note(language),
        })
    }
}

/// All operations except the calls of tools, which a script permits one by one.
pub(crate) static OPERATIONS: [OperationInfo; 15] = [
    OperationInfo {
        name: "create_plan",
        group: OperationGroup::Plan,
        required: "goal",
        optional: "title, notes, sections, style",
        notes: [
            "根据目标生成一份新计划和它的第一层任务。",
            "Generates a new plan for a goal, with its first level of tasks.",
        ],
        must_be_listed: false,
    },
    OperationInfo {
        name: "list_plans",
        group: OperationGroup::Plan,
        required: "",
        optional: "session_id, workflow_id",
        notes: ["列出看得到的计划。", "Lists the plans that can be seen."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "execute_plan",
        group: OperationGroup::Plan,
        required: "plan_id",
        optional: "",
        notes: [
            "按依赖的次序执行计划里待办的任务；blocking 为 false 时立刻返回，任务在这一轮结束前做完。",
            "Runs the pending tasks of a plan in the order of their dependencies; with blocking false it returns at once, and the tasks end before the round does.",
        ],
        must_be_listed: true,
    },
    OperationInfo {
        name: "delete_plan",
        group: OperationGroup::Plan,
        required: "plan_id",
        optional: "",
        notes: ["永久删除一份计划和它的全部任务。", "Deletes a plan and all of its tasks for good."],
        must_be_listed: true,
    },
    OperationInfo {
        name: "help",
        group: OperationGroup::System,
        required: "",
        optional: "",
        notes: ["返回可用的操作和用法。", "Returns the operations and how to use them."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "create_task",
        group: OperationGroup::Task,
        required: "task_name",
        optional: "plan_id, parent_id, instruction, task_type, metadata, dependencies, anchor_task_id, anchor_position (first_child | last_child | before | after), position",
        notes: [
            "在计划里新建一个任务；用锚点指定位置，不写就放在最后。",
            "Creates a task in a plan; an anchor says where, otherwise it comes last.",
        ],
        must_be_listed: false,
    },
    OperationInfo {
        name: "update_task",
        group: OperationGroup::Task,
        required: "task_id | task_name",
        optional: "name, instruction, metadata, dependencies",
        notes: ["修改一个任务。", "Changes a task."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "update_task_instruction",
        group: OperationGroup::Task,
        required: "instruction, task_id | task_name",
        optional: "",
        notes: [
            "补充一个任务的说明，和原有的合在一起。",
            "Adds to the instruction of a task; the earlier one is kept.",
        ],
        must_be_listed: false,
    },
    OperationInfo {
        name: "move_task",
        group: OperationGroup::Task,
        required: "task_id | task_name",
        optional: "new_parent_id (null: 根 / root), new_parent_name",
        notes: ["把一个任务移到另一个任务下面。", "Moves a task under another one."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "delete_task",
        group: OperationGroup::Task,
        required: "task_id | task_name",
        optional: "plan_id",
        notes: ["删除一个任务和它的子任务。", "Deletes a task with everything under it."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "show_tasks",
        group: OperationGroup::Task,
        required: "",
        optional: "plan_id",
        notes: ["列出计划的任务。", "Lists the tasks of a plan."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "query_status",
        group: OperationGroup::Task,
        required: "plan_id | task_id",
        optional: "",
        notes: ["查看计划或任务的状态。", "Tells the status of a plan or a task."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "rerun_task",
        group: OperationGroup::Task,
        required: "task_id",
        optional: "",
        notes: ["让一个任务回到待办，再执行一次。", "Resets a task to pending and runs it again."],
        must_be_listed: false,
    },
    OperationInfo {
        name: "decompose_task",
        group: OperationGroup::Task,
        required: "",
        optional: "task_id, expand_depth, node_budget",
        notes: [
            "把一个任务逐层分成子任务；不写 task_id 时从计划的第一层开始。",
            "Divides a task into smaller ones, level by level; without task_id it begins with the roots of the plan.",
        ],
        must_be_listed: false,
    },
    OperationInfo {
        name: "request_subgraph",
        group: OperationGroup::Context,
        required: "logical_id | task_id",
        optional: "max_depth",
        notes: [
            "要求看一个任务下面的细节；这次回复里不能有别的操作。",
            "Requests the details under a task; the reply must hold no other operation.",
        ],
        must_be_listed: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_operation_has_a_name_of_its_own_and_is_explained_in_both_languages() {
        let names: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        assert_eq!(names.len(), OPERATIONS.len());
        for operation in &OPERATIONS {
            assert!(!operation.note(PromptLanguage::Zh).is_ascii(), "{}", operation.name);
            assert!(operation.note(PromptLanguage::En).is_ascii(), "{}", operation.name);
            assert_eq!(OperationInfo::of(operation.name).map(|found| found.name), Some(operation.name));
        }
        let listed: Vec<&str> =
            OPERATIONS.iter().filter(|operation| operation.must_be_listed).map(|operation| operation.name).collect();
        assert_eq!(listed, ["execute_plan", "delete_plan"]);
    }
}
