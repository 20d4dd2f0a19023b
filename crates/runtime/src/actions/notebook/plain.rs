//! The notebook kinds of docs/notebook.md that differ only in their names and fields, as a table; each has its schema and its page.

use crate::actions::notebook::author_action::ActionReader;
use crate::actions::notebook::kind::{NotebookKind, described};
use crate::program::action::Action;
use crate::program::kind::{Kind, KindChecker, KindInfo};
use bcc_lang::script::fields::Fields;

pub struct PlainKind {
    name: &'static str,
    schema: &'static str,
    page: &'static str,
    /// What its config may hold, in the order in which it is read.
    fields: &'static [Field],
}

enum Field {
    Text(&'static str),
    Required(&'static str),
    Texts(&'static str),
    /// `shot_type`. That of code has the other fields read as those of a code cell.
    ShotType,
    /// `content`, which is no text for people when it is code.
    Content,
    /// `metadata`, which may have code run.
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

/// An agent begins to think, in a cell of its own (docs/notebook.md).
pub static IS_THINKING: PlainKind = PlainKind {
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

/// The thinking that is under way comes to its end (docs/notebook.md).
pub static FINISH_THINKING: PlainKind = PlainKind {
    name: "finish_thinking",
    schema: include_str!("../../../../../schemas/actions/finish_thinking.json"),
    page: include_str!("../../../../../docs/actions/finish_thinking.md"),
    fields: &[],
};

/// Begins a chapter of the notebook (docs/notebook.md).
pub static NEW_CHAPTER: PlainKind = PlainKind {
    name: "new_chapter",
    schema: include_str!("../../../../../schemas/actions/new_chapter.json"),
    page: include_str!("../../../../../docs/actions/new_chapter.md"),
    fields: &[Field::Content, Field::Metadata],
};

/// Begins a section of the notebook (docs/notebook.md).
pub static NEW_SECTION: PlainKind = PlainKind {
    name: "new_section",
    schema: include_str!("../../../../../schemas/actions/new_section.json"),
    page: include_str!("../../../../../docs/actions/new_section.md"),
    fields: &[Field::Content, Field::Metadata],
};

/// Gives the notebook a title (docs/notebook.md).
pub static UPDATE_TITLE: PlainKind = PlainKind {
    name: "update_title",
    schema: include_str!("../../../../../schemas/actions/update_title.json"),
    page: include_str!("../../../../../docs/actions/update_title.md"),
    fields: &[Field::Required("title")],
};

/// Gives the session another plan (docs/notebook.md).
pub static UPDATE_WORKFLOW: PlainKind = PlainKind {
    name: "update_workflow",
    schema: include_str!("../../../../../schemas/actions/update_workflow.json"),
    page: include_str!("../../../../../docs/actions/update_workflow.md"),
    fields: &[Field::Plan("updated_workflow")],
};

/// Gives a stage of the plan other steps (docs/notebook.md).
pub static UPDATE_STAGE_STEPS: PlainKind = PlainKind {
    name: "update_stage_steps",
    schema: include_str!("../../../../../schemas/actions/update_stage_steps.json"),
    page: include_str!("../../../../../docs/actions/update_stage_steps.md"),
    fields: &[Field::Required("stage_id"), Field::Steps("updated_steps")],
};

/// A step of the plan is completed (docs/notebook.md).
pub static END_PHASE: PlainKind = PlainKind {
    name: "end_phase",
    schema: include_str!("../../../../../schemas/actions/end_phase.json"),
    page: include_str!("../../../../../docs/actions/end_phase.md"),
    fields: &[Field::Text("step_id")],
};

/// Moves the machine of the notebook by an event of the author's own (docs/notebook.md).
pub static NEXT_EVENT: PlainKind = PlainKind {
    name: "next_event",
    schema: include_str!("../../../../../schemas/actions/next_event.json"),
    page: include_str!("../../../../../docs/actions/next_event.md"),
    fields: &[Field::Required("event_type")],
};

impl Kind for PlainKind {
    fn about(&self) -> KindInfo {
        KindInfo { name: self.name, schema: self.schema, page: self.page, exits: &["exit_criteria_met"] }
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let mut reading = ActionReader::new(fields, checking);
        let (mut code, mut runs) = (false, false);
        for field in self.fields {
            match field {
                Field::Text(name) => reading.text(name),
                Field::Required(name) => reading.required_text(name),
                Field::Texts(name) => reading.texts(name),
                Field::ShotType => {
                    code = reading.choice("shot_type", &["dialogue", "observation", "action"]) == Some("action")
                }
                Field::Content => reading.required_content("content", code),
                Field::Metadata => runs = reading.metadata(code),
                Field::Plan(name) => reading.plan(name),
                Field::Steps(name) => reading.steps(name),
            }
        }
        reading.checking.describe(described(runs));
        let written = reading.finish(self.name)?;
        Some(Box::new(NotebookKind { written, timeout: None, fails: false }))
    }
}
