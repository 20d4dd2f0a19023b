//! The state of a session's notebook beside its cells. It is bounded: cells lie in rows of their own, and everything here has
//! a largest size, so that what one action costs does not grow with the notebook.
//!
//! Who changes it: [`crate::notebook::apply`] by actions, [`crate::notebook::protocol::context`] by what a response says, and
//! `notebook/navigation.rs`, for whoever leads a session through its plan:
//!
//! * [`NotebookState::enter_home`]: the script entered a topic; makes the plan the first time;
//! * [`NotebookState::current_stage`], [`NotebookState::current_step`], [`NotebookState::next_step`], [`NotebookState::remaining_stages`],
//!   [`NotebookState::remaining_steps`], [`NotebookState::completed_steps_here`]: where the session is;
//! * [`NotebookState::go_to`]: a server or a model moves it; [`NotebookState::complete_step`]: a step is done;
//! * [`NotebookState::begin_behavior`], [`NotebookState::name_behavior`], [`NotebookState::end_behavior`], [`NotebookState::swap_pending`]: behaviors, and the
//!   plan that waits for their end;
//! * [`NotebookState::keep_variable`]: variables that no script declares.

use bcc_lang::message::msg;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook::effects::Effects;
use crate::notebook::error::ActionRejection;
use crate::notebook::workflow::{Workflow, is_id};

/// The most items of a todo list.
pub const MOST_TODO: usize = 200;

/// The most bytes of one item of a todo list.
pub const MOST_TODO_BYTES: usize = 1_000;

/// The most sections that are remembered as completed.
pub const MOST_COMPLETED: usize = 200;

/// The most completed steps that are remembered; those of the plan are the last to be forgotten.
pub const MOST_COMPLETED_STEPS: usize = 1_000;

/// The most variables that no script declares.
pub const MOST_VARIABLES: usize = 200;

/// The most bytes of the variables that no script declares, as JSON; as many may be shown of the kernel's.
pub const MOST_VARIABLE_BYTES: usize = 64 * 1024;

/// The most ids of the form `cell-{number}` that may be given to cells before their number is reached.
pub const MOST_AHEAD: usize = 200;

/// The state of the machine before anything was done.
pub const IDLE: &str = "IDLE";
pub const STEP_RUNNING: &str = "STEP_RUNNING";
pub const BEHAVIOR_RUNNING: &str = "BEHAVIOR_RUNNING";
pub const STEP_COMPLETED: &str = "STEP_COMPLETED";
/// Another plan waits for the behavior to end.
pub const WORKFLOW_UPDATE_PENDING: &str = "WORKFLOW_UPDATE_PENDING";

/// A notebook without its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotebookState {
    pub title: Option<String>,
    /// How many cells it has; the next one gets this number and one.
    pub cell_count: u64,
    pub chapter_count: u64,
    pub section_count: u64,
    /// The id of the cell that holds the title as its heading, once there is one.
    pub title_cell: Option<String>,
    /// `lastAddedCellId`: the id of the last code cell that was added.
    pub last_code_cell: Option<String>,
    /// Numbers whose own id, `cell-{number}`, an earlier cell was given by name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub ids_ahead: BTreeSet<u64>,
    pub last_cell_type: Option<String>,
    /// The first words of what the last code that ran gave.
    pub last_output: Option<String>,
    /// The id of the cell of the thinking that is under way.
    pub thinking: Option<String>,
    /// How many cells were executed; 0 while no code ever ran.
    pub executed: u64,
    pub effects: Effects,
    pub fsm: Fsm,
    pub location: Location,
    pub todo_list: Vec<String>,
    pub section_progress: SectionProgress,
    /// Variables that no script declares: what a server keeps, by `context_update`.
    pub variables: Map<String, Value>,
    /// Variables of the kernel, as they can be shown; those of the last code that ran.
    pub kernel_variables: Map<String, Value>,
    /// The plan; none before a behavior or a plan action asked for it.
    pub workflow: Option<Workflow>,
    /// Whether a behavior is under way: then a new plan waits for its end.
    pub behavior_is_open: bool,
    /// The plan that takes its place when the behavior under way ends.
    pub workflow_pending: Option<Workflow>,
    /// How often a source of behaviors moved the session to a topic of its script.
    pub moves: u32,
}

/// The machine of docs/notebook.md (`FSM`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fsm {
    /// Its state, in capitals.
    pub state: String,
    #[serde(default)]
    pub last_transition: Option<String>,
    /// When, RFC 3339.
    #[serde(default)]
    pub timestamp: Option<String>,
}

impl Default for Fsm {
    fn default() -> Self {
        Self { state: IDLE.to_owned(), last_transition: None, timestamp: None }
    }
}

/// Where in the plan a session is (docs/protocol.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Location {
    /// The topic of the script that the location was last taken from, as `phase/topic`: entering another one moves it.
    pub home: String,
    pub stage_id: Option<String>,
    pub step_id: Option<String>,
    /// The behavior that is under way, or was last.
    pub behavior_id: Option<String>,
    /// Which one of its step, from 1; 0 before the first.
    pub behavior_iteration: u32,
    /// How many behaviors the session had; their ids come from it.
    pub behaviors: u64,
    /// The steps that are completed, in order.
    pub completed_steps: Vec<String>,
    /// The stages that are completed, in order.
    pub completed_stages: Vec<String>,
}

/// How far the content of a step is (docs/protocol.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionProgress {
    pub current_section_id: Option<String>,
    /// Which one, from 1.
    pub current_section_number: Option<u64>,
    /// Those that are done, in order.
    pub completed_sections: Vec<String>,
    /// How many there are to be, where somebody said so.
    pub total_expected: Option<u64>,
}

impl NotebookState {
    /// Keeps a variable that no script declares; null forgets it.
    /// Errors: `too-many-variables` when there are too many of them or they are too large together. Nothing is changed then.
    pub fn keep_variable(&mut self, name: &str, value: Value) -> Result<(), ActionRejection> {
        if value.is_null() {
            self.variables.shift_remove(name);
            return Ok(());
        }
        let size = |name: &str, value: &Value| name.len() + value.to_string().len();
        let others = self.variables.iter().filter(|(other, _)| *other != name);
        let (count, bytes) = others
            .fold((1, size(name, &value)), |(count, bytes), (name, value)| (count + 1, bytes + size(name, value)));
        if !is_id(name) || count > MOST_VARIABLES || bytes > MOST_VARIABLE_BYTES {
            let message = msg!(
                "a variable was not saved: at most {MOST_VARIABLES} variables and {MOST_VARIABLE_BYTES} bytes are saved, and names must be one line"
            );
            return Err(ActionRejection::new("too-many-variables", message));
        }
        self.variables.insert(name.to_owned(), value);
        Ok(())
    }
}

impl SectionProgress {
    /// A section began: the one that was under way is completed, and this one is not.
    pub(crate) fn begin(&mut self, id: String, number: u64) {
        self.completed_sections.retain(|done| *done != id);
        self.current_section_number = Some(number);
        let Some(before) =
            self.current_section_id.replace(id).filter(|before| Some(before) != self.current_section_id.as_ref())
        else {
            return;
        };
        if !self.completed_sections.contains(&before) {
            self.completed_sections.push(before);
        }
        let over = self.completed_sections.len().saturating_sub(MOST_COMPLETED);
        self.completed_sections.drain(..over);
    }
}
