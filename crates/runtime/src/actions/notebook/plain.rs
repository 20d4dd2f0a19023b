//! The notebook kinds of docs/notebook.md that differ only in their names and fields, as a table. Each has its own schema and page.

use crate::actions::notebook::author_action::ActionReader;
use crate::actions::notebook::kind::{NotebookKind, described};
use crate::program::action::Action;
use crate::program::kind::{Kind, KindChecker, KindInfo};
use bcc_lang::script::fields::Fields;

pub struct PlainKind {
    name: &'static str,
    schema: &'static str,
    page: &'static str,
    /// The fields of its configuration, in the order in which they are read.
    fields: &'static [Field],
}

enum Field {
    Text(&'static str),
    Required(&'static str),
    Texts(&'static str),
    /// `shot_type`. If it means code, the other fields are read as those of a code cell.
    ShotType,
    /// `content`: text for people, or code.
    Content,
    /// `metadata`, which may request that the code runs.
    Metadata,
    Plan(&'static str),
    Steps(&'static str),
}

/// Adds a cell to the notebook (docs/notebook.md).
pub static ADD: PlainKind = PlainKind {
    name: "add",
    schema: include_str!("../../../../../schemas/actions/add.json"),
    page: include_str!("../../../../../docs/actions/add.md"),
    fields: &[Field::ShotType, Field::Content, Field::Text("store_id"), Field::Metadata],
};

/// Starts the thinking of an agent, in its own cell (docs/notebook.md).
pub(crate) static IS_THINKING: PlainKind = PlainKind {
    name: "is_thinking",
    schema: include_str!("../../../../../schemas/actions/is_thinking.json"),
    page: include_str!("../../../../../docs/actions/is_thinking.md"),
    fields: &[
        Field::Text("thinking_text"),
        Field::Text("agent_name"),
        Field::Text("custom_text"),
        Field::Texts("text_array"),
    ],
};

/// Ends the current thinking (docs/notebook.md).
pub(crate) static FINISH_THINKING: PlainKind = PlainKind {
    name: "finish_thinking",
    schema: include_str!("../../../../../schemas/actions/finish_thinking.json"),
    page: include_str!("../../../../../docs/actions/finish_thinking.md"),
    fields: &[],
};

/// Starts a chapter of the notebook (docs/notebook.md).
pub(crate) static NEW_CHAPTER: PlainKind = PlainKind {
    name: "new_chapter",
    schema: include_str!("../../../../../schemas/actions/new_chapter.json"),
    page: include_str!("../../../../../docs/actions/new_chapter.md"),
    fields: &[Field::Content, Field::Metadata],
};

/// Starts a section of the notebook (docs/notebook.md).
pub(crate) static NEW_SECTION: PlainKind = PlainKind {
    name: "new_section",
    schema: include_str!("../../../../../schemas/actions/new_section.json"),
    page: include_str!("../../../../../docs/actions/new_section.md"),
    fields: &[Field::Content, Field::Metadata],
};

/// Sets the title of the notebook (docs/notebook.md).
pub(crate) static UPDATE_TITLE: PlainKind = PlainKind {
    name: "update_title",
    schema: include_str!("../../../../../schemas/actions/update_title.json"),
    page: include_str!("../../../../../docs/actions/update_title.md"),
    fields: &[Field::Required("title")],
};

/// Replaces the plan of the session (docs/notebook.md).
pub(crate) static UPDATE_WORKFLOW: PlainKind = PlainKind {
    name: "update_workflow",
    schema: include_str!("../../../../../schemas/actions/update_workflow.json"),
    page: include_str!("../../../../../docs/actions/update_workflow.md"),
    fields: &[Field::Plan("updated_workflow")],
};

/// Replaces the steps of a stage of the plan (docs/notebook.md).
pub(crate) static UPDATE_STAGE_STEPS: PlainKind = PlainKind {
    name: "update_stage_steps",
    schema: include_str!("../../../../../schemas/actions/update_stage_steps.json"),
    page: include_str!("../../../../../docs/actions/update_stage_steps.md"),
    fields: &[Field::Required("stage_id"), Field::Steps("updated_steps")],
};

/// Completes a step of the plan (docs/notebook.md).
pub(crate) static END_PHASE: PlainKind = PlainKind {
    name: "end_phase",
    schema: include_str!("../../../../../schemas/actions/end_phase.json"),
    page: include_str!("../../../../../docs/actions/end_phase.md"),
    fields: &[Field::Text("step_id")],
};

/// Changes the state of the state machine of the notebook by an event of the author (docs/notebook.md).
pub(crate) static NEXT_EVENT: PlainKind = PlainKind {
    name: "next_event",
    schema: include_str!("../../../../../schemas/actions/next_event.json"),
    page: include_str!("../../../../../docs/actions/next_event.md"),
    fields: &[Field::Required("event_type")],
};

impl Kind for PlainKind {
    fn info(&self) -> KindInfo {
        KindInfo { name: self.name, schema: self.schema, page: self.page, exits: &["exit_criteria_met"] }
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let mut reader = ActionReader::new(fields, checker);
        let (mut code, mut runs) = (false, false);
        for field in self.fields {
            match field {
                Field::Text(name) => reader.text(name),
                Field::Required(name) => reader.required_text(name),
                Field::Texts(name) => reader.texts(name),
                Field::ShotType => {
                    code = reader.choice("shot_type", &["dialogue", "observation", "action"]) == Some("action")
                }
                Field::Content => reader.required_content("content", code),
                Field::Metadata => runs = reader.metadata(code),
                Field::Plan(name) => reader.plan(name),
                Field::Steps(name) => reader.steps(name),
            }
        }
        reader.checker.describe(described(runs));
        let action = reader.finish(self.name)?;
        Some(Box::new(NotebookKind { action, timeout: None, fail_on_error: false, auto_debug: false }))
    }
}
