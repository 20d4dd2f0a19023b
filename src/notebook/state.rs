//! The state of a session's notebook beside its cells. It is bounded: cells lie in rows of their own, and everything here has
//! a largest size, so that what one action costs does not grow with the notebook.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook::effects::Effects;
use crate::notebook::workflow::Workflow;

/// The most items of a todo list.
pub const MOST_TODO: usize = 200;

/// The most bytes of one item of a todo list.
pub const MOST_TODO_BYTES: usize = 1_000;

/// The most sections that are remembered as completed.
pub const MOST_COMPLETED: usize = 200;

/// The state of the machine before anything was done.
pub const IDLE: &str = "IDLE";
/// A step is under way.
pub const STEP_RUNNING: &str = "STEP_RUNNING";
/// A behavior is under way.
pub const BEHAVIOR_RUNNING: &str = "BEHAVIOR_RUNNING";
/// A step came to its end.
pub const STEP_COMPLETED: &str = "STEP_COMPLETED";
/// Another plan waits for the behavior to end.
pub const WORKFLOW_UPDATE_PENDING: &str = "WORKFLOW_UPDATE_PENDING";

/// A notebook without its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Its title.
    pub title: Option<String>,
    /// How many cells it has; the next one gets this number and one.
    pub cell_count: u64,
    /// How many chapters were begun.
    pub chapter_count: u64,
    /// How many sections were begun.
    pub section_count: u64,
    /// The id of the cell that holds the title as its heading, once there is one.
    pub title_cell: Option<String>,
    /// `lastAddedCellId`: the id of the last code cell that was added.
    pub last_code_cell: Option<String>,
    /// What the last cell is.
    pub last_cell_type: Option<String>,
    /// The first words of what the last code that ran gave.
    pub last_output: Option<String>,
    /// The id of the cell of the thinking that is under way.
    pub thinking: Option<String>,
    /// How many cells were executed; 0 while no code ever ran.
    pub executed: u64,
    /// What actions did.
    pub effects: Effects,
    /// The machine.
    pub fsm: Fsm,
    /// Where in the plan the session is.
    pub location: Location,
    /// What is left to do.
    pub todo_list: Vec<String>,
    /// How far the content is.
    pub section_progress: SectionProgress,
    /// Variables that no script declares: what a server keeps, by `context_update`.
    pub variables: Map<String, Value>,
    /// Variables of the kernel, as they can be shown; those of the last code that ran.
    pub kernel_variables: Map<String, Value>,
    /// The plan; none before a behavior or a plan action asked for it.
    pub workflow: Option<Workflow>,
    /// The plan that takes its place when the behavior under way ends.
    pub workflow_pending: Option<Workflow>,
}

/// The machine of 000 (`FSM`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fsm {
    /// Its state, in capitals.
    pub state: String,
    /// What brought it there.
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

/// Where in the plan a session is (001, `location`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Location {
    /// The topic of the script that the location was last taken from, as `phase/topic`: entering another one moves it.
    pub home: String,
    /// The stage.
    pub stage_id: Option<String>,
    /// The step.
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

/// How far the content of a step is (001, `section_progress`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionProgress {
    /// The section under way.
    pub current_section_id: Option<String>,
    /// Which one, from 1.
    pub current_section_number: Option<u64>,
    /// Those that are done, in order.
    pub completed_sections: Vec<String>,
    /// How many there are to be, where somebody said so.
    pub total_expected: Option<u64>,
}
