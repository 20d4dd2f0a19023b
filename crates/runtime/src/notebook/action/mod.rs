//! The eleven notebook actions of docs/notebook.md, and the one reader of them: what an author writes in YAML, what a model answers and what
//! a server sends come in through [`read`], with every older name of docs/protocol.md.

use serde_json::{Map, Value};

use crate::notebook::cell::{CellKind, Metadata};
use crate::notebook::error::ActionFieldError;
use crate::notebook::workflow::{PlanStep, Workflow};

pub mod fields;
mod forms;
pub mod reader;

/// The id that stands for the last code cell that was added.
pub const LAST_ADDED: &str = "lastAddedCellId";

/// The names of the actions, as docs/notebook.md has them.
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

/// One action, read and checked for itself; whether the cells and steps that it names are there is seen when it is applied.
#[derive(Clone, Debug, PartialEq)]
pub enum NotebookAction {
    Add(AddAction),
    Exec(ExecAction),
    IsThinking(Thinking),
    FinishThinking,
    NewChapter(Heading),
    NewSection(Heading),
    /// `new_step`, which only models and servers send
    NewStep(Heading),
    UpdateTitle(String),
    UpdateWorkflow(Workflow),
    UpdateStageSteps(String, Vec<PlanStep>),
    EndPhase(Option<String>),
    NextEvent(String),
}

impl NotebookAction {
    /// Its name: one of [`NAMES`], or `new_step`.
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
        }
    }
}

/// `add`: a new cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddAction {
    pub content: String,
    /// What it is, from its shot type or content type.
    pub kind: CellKind,
    /// `store_id`: the id that it gets.
    pub store_id: Option<String>,
    pub metadata: Metadata,
    /// `should_execute`: whether it runs at once.
    pub run: bool,
}

/// `exec`: a code cell that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecAction {
    /// The cell, or [`LAST_ADDED`].
    pub codecell_id: String,
    /// Whether what it gives is kept.
    pub need_output: bool,
    /// Whether the model is asked to mend it when it fails.
    pub auto_debug: bool,
    /// Kept for whoever shows the notebook.
    pub keep_debug_button_visible: bool,
}

/// `is_thinking`: an agent begins to think.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    pub thinking_text: Option<String>,
    pub agent_name: Option<String>,
    /// What is shown instead of the text.
    pub custom_text: Option<String>,
    pub text_array: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heading {
    /// Its words, without `#`.
    pub content: String,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// One of the eleven.
    Known(Box<NotebookAction>),
    /// Another name: a custom kind of the project, or nothing that we know.
    Other { name: String, fields: Map<String, Value> },
}

/// Reads an action in any of its forms: `{"action": "add", …}`, `{"type": "add", …}`, `{"action": {"type": "add", …}}`, and what
/// an author wrote under `config` with the kind as `action`. What can be passed over is; [`read_noting`] tells of it.
/// Errors: When it is no object, names no kind, lacks or mistypes a field, or is too much.
pub fn read(value: &Value) -> Result<Read, ActionFieldError> {
    read_noting(value, &mut Vec::new())
}

/// As [`read`], and tells what was passed over, as a shot type that is none: an error where an author wrote it, a warning
/// where a model or a server did.
pub fn read_noting(value: &Value, notes: &mut Vec<ActionFieldError>) -> Result<Read, ActionFieldError> {
    let (name, fields) = forms::unwrapped(value)?;
    match forms::known(&name) {
        Some(kind) => Ok(Read::Known(Box::new(reader::action(kind, &fields, notes)?))),
        None => Ok(Read::Other { name, fields }),
    }
}

/// Whether this is the name of an action of ours, in whatever spelling: no kind of a project can have it.
pub fn is_known(name: &str) -> bool {
    forms::known(name).is_some()
}
