//! The eleven notebook actions of docs/notebook.md and their reader. Actions of authors, models and servers are all read by
//! [`read`], with every legacy name of docs/protocol.md.

use serde_json::{Map, Value};

use crate::notebook::cell::{CellKind, Metadata};
use crate::notebook::error::ActionFieldError;
use crate::notebook::workflow::{PlanStep, Workflow};

pub mod fields;
mod forms;
pub mod reader;

/// The id that refers to the last added code cell.
pub const LAST_ADDED: &str = "lastAddedCellId";

/// The names of the actions in docs/notebook.md.
pub const NAMES: [&str; 11] = [
    "add",
    "exec",
    "is_thinking",
    "finish_thinking",
    "new_chapter",
    "new_section",
    "update_title",
    "update_workflow",
    "update_stage_steps",
    "end_phase",
    "next_event",
];

/// One action after its own checks. Whether the cells and steps that it names exist is checked when it is applied.
#[derive(Clone, Debug, PartialEq)]
pub enum NotebookAction {
    Add(AddAction),
    Exec(ExecAction),
    IsThinking(Thinking),
    FinishThinking,
    NewChapter(Heading),
    NewSection(Heading),
    /// `new_step`, which only models and servers send.
    NewStep(Heading),
    UpdateTitle(String),
    UpdateWorkflow(Workflow),
    UpdateStageSteps(String, Vec<PlanStep>),
    EndPhase(Option<String>),
    NextEvent(String),
    /// `update_last_text`, which only older servers send, like the next ones.
    UpdateLastText(String),
    /// `set_effect_as_thinking`: the last code cell belongs to a thought that has ended.
    SetEffectAsThinking(Option<String>),
    /// `mark_stage_complete`: all steps of a stage, by default the current one.
    CompleteStage(Option<String>),
    /// `complete_reflection`: the end of a judgement, which changes nothing.
    CompleteReflection,
}

impl NotebookAction {
    /// Its name: one of [`NAMES`], or one that only models and servers send.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Exec(_) => "exec",
            Self::IsThinking(_) => "is_thinking",
            Self::FinishThinking => "finish_thinking",
            Self::NewChapter(_) => "new_chapter",
            Self::NewSection(_) => "new_section",
            Self::NewStep(_) => "new_step",
            Self::UpdateTitle(_) => "update_title",
            Self::UpdateWorkflow(_) => "update_workflow",
            Self::UpdateStageSteps(..) => "update_stage_steps",
            Self::EndPhase(_) => "end_phase",
            Self::NextEvent(_) => "next_event",
            Self::UpdateLastText(_) => "update_last_text",
            Self::SetEffectAsThinking(_) => "set_effect_as_thinking",
            Self::CompleteStage(_) => "mark_stage_complete",
            Self::CompleteReflection => "complete_reflection",
        }
    }
}

/// `add`: a new cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddAction {
    pub content: String,
    /// The kind of the cell, from its shot type or content type.
    pub kind: CellKind,
    /// `store_id`: the id of the new cell.
    pub store_id: Option<String>,
    pub metadata: Metadata,
    /// `should_execute`: whether it runs immediately.
    pub run: bool,
}

/// `exec`: runs a code cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecAction {
    /// The cell, or `LAST_ADDED`.
    pub codecell_id: String,
    /// Whether its output is stored.
    pub need_output: bool,
    /// Whether a model is asked to fix the code if it fails.
    pub auto_debug: bool,
    /// Stored for programs that show the notebook.
    pub keep_debug_button_visible: bool,
}

/// `is_thinking`: an agent starts to think.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    pub thinking_text: Option<String>,
    pub agent_name: Option<String>,
    /// The text that is shown instead.
    pub custom_text: Option<String>,
    pub text_array: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heading {
    /// Its text, without `#`.
    pub content: String,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// A notebook action.
    Known(Box<NotebookAction>),
    /// Another name: an action kind of the project, or an unknown name.
    Unknown { name: String, fields: Map<String, Value> },
}

/// Reads an action in any of its forms: `{"action": "add", …}`, `{"type": "add", …}`, `{"action": {"type": "add", …}}`, and
/// what an author wrote under `config` with the kind as `action`. Parts that can be ignored are ignored; [`read_with_notes`]
/// reports them.
/// Errors: It is not an object, names no kind, lacks a field, has a field of the wrong type, or exceeds a limit.
pub fn read(value: &Value) -> Result<Read, ActionFieldError> {
    read_with_notes(value, &mut Vec::new())
}

/// Like [`read`], but reports what was ignored, for example an unknown shot type: an error for an author, a warning for a model
/// or a server.
pub fn read_with_notes(value: &Value, notes: &mut Vec<ActionFieldError>) -> Result<Read, ActionFieldError> {
    let (name, fields) = forms::unwrap_action(value)?;
    match forms::known_action(&name) {
        Some(kind) => Ok(Read::Known(Box::new(reader::action(kind, &fields, notes)?))),
        None => Ok(Read::Unknown { name, fields }),
    }
}

/// The name of an action as it was sent, in snake_case, and its fields. `None` if it is no action.
pub fn sent_action(value: &Value) -> Option<(String, Map<String, Value>)> {
    let (name, fields) = forms::unwrap_action(value).ok()?;
    Some((forms::plain_name(&name), fields))
}

/// Whether this is the name of a notebook action in any spelling. A kind of a project cannot have it.
pub fn is_known(name: &str) -> bool {
    forms::known_action(name).is_some()
}
