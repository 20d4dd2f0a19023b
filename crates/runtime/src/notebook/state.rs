//! The state of the notebook of a session, without its cells, which are stored separately. The size of each part is limited, so
//! that the cost of an action does not depend on the length of the notebook.
//!
//! It is changed by actions ([`crate::notebook::apply`]), by responses ([`crate::notebook::protocol::context`]), and by the
//! navigation in the plan (`notebook/navigation.rs`):
//!
//! * [`NotebookState::enter_topic`]: the script enters a topic, and the plan is created the first time;
//! * `NotebookState::current_stage`, [`NotebookState::current_step`], [`NotebookState::next_step`],
//!   [`NotebookState::remaining_stages`], [`NotebookState::remaining_steps`], [`NotebookState::completed_steps_of_stage`]: the
//!   current location;
//! * [`NotebookState::go_to`]: a server or a model moves the session; [`NotebookState::complete_step`]: a step is completed;
//! * [`NotebookState::start_behavior`], [`NotebookState::set_behavior_id`], [`NotebookState::end_behavior`],
//!   [`NotebookState::apply_pending_plan`]: behaviors, and the plan that becomes active when they end;
//! * [`NotebookState::store_variable`]: undeclared variables.

use bcc_lang::message::msg;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::effects::Effects;
use crate::notebook::error::ActionRejection;
use crate::notebook::given::GivenWork;
use crate::notebook::json_size::json_size;
use crate::notebook::kernel::contract::KernelSource;
use crate::notebook::kernel_variables::KernelVariables;
use crate::notebook::workflow::{Workflow, is_id};

/// The maximum number of items of a todo list.
pub const MAX_TODO_ITEMS: usize = 200;

/// The maximum size of one item of a todo list, in bytes.
pub const MAX_TODO_ITEM_BYTES: usize = 1_000;

/// The maximum number of stored completed sections.
pub const MAX_COMPLETED_SECTIONS: usize = 200;

/// The maximum number of stored completed steps; those of the plan are removed last.
pub(crate) const MAX_COMPLETED_STEPS: usize = 1_000;

/// The maximum number of undeclared variables.
pub const MAX_VARIABLES: usize = 200;

/// The maximum size of the undeclared variables as JSON, in bytes. The same limit applies to the variables of the kernel.
pub const MAX_VARIABLES_BYTES: usize = 64 * 1024;

/// The maximum number of ids of the form `cell-{number}` that may be given to cells before that number is reached.
pub(crate) const MAX_IDS_AHEAD: usize = 200;

/// The initial state of the state machine.
pub(crate) const IDLE: &str = "IDLE";
/// The session is in a stage without steps.
pub(crate) const STAGE_RUNNING: &str = "STAGE_RUNNING";
pub const STEP_RUNNING: &str = "STEP_RUNNING";
pub const BEHAVIOR_RUNNING: &str = "BEHAVIOR_RUNNING";
/// A behavior has ended and is judged.
pub(crate) const BEHAVIOR_COMPLETED: &str = "BEHAVIOR_COMPLETED";
pub const STEP_COMPLETED: &str = "STEP_COMPLETED";
/// A plan becomes active when the behavior ends.
pub(crate) const WORKFLOW_UPDATE_PENDING: &str = "WORKFLOW_UPDATE_PENDING";

/// The state of a notebook without its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotebookState {
    pub title: Option<String>,
    /// The number of cells; the next cell gets the following number.
    pub cell_count: u64,
    pub chapter_count: u64,
    pub section_count: u64,
    /// The id of the cell that shows the title as its heading, if there is one.
    pub title_cell: Option<String>,
    /// `lastAddedCellId`: the id of the last added code cell.
    pub last_code_cell: Option<String>,
    /// The id of the last added text cell that is no heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_text_cell: Option<String>,
    /// Numbers whose default id, `cell-{number}`, was given to an earlier cell.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub ids_ahead: BTreeSet<u64>,
    pub last_cell_type: Option<String>,
    /// The start of the output of the last code that ran.
    pub last_output: Option<String>,
    /// The id of the cell of the current thinking.
    pub thinking: Option<String>,
    /// The number of executed cells; 0 if no code has run.
    pub executed: u64,
    /// The bytes of the large outputs that are stored on their own.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_bytes: u64,
    /// The hashes of the libraries for charts that code has shown. They are in no cell: a kernel sends each once, whatever becomes of the
    /// cell that asked for it first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chart_libraries: Vec<String>,
    pub effects: Effects,
    pub fsm: Fsm,
    pub location: Location,
    pub todo_list: Vec<String>,
    pub section_progress: SectionProgress,
    /// Undeclared variables, which servers store by `context_update`.
    pub variables: Map<String, Value>,
    /// They are stored as rows of their own.
    #[serde(skip_serializing)]
    pub kernel_variables: KernelVariables,
    /// What the kernel says about its language (`language_info` of nbformat); empty before code has run.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub kernel_language: Map<String, Value>,
    /// The memory in which the last code ran, if the kernel goes on without the process that drives the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_memory: Option<String>,
    /// The kernel that a session started on a Jupyter server, and that ends with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_kernel: Option<StartedKernel>,
    /// The code that a person rejected last, which code that is written again is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_code: Option<String>,
    /// The cell whose code ran when it was added, until another action is performed: an `exec` that follows does not run it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_when_added: Option<RanCell>,
    /// The plan; `None` before a behavior or a plan action needed it.
    pub workflow: Option<Workflow>,
    /// Whether a behavior is in progress; a new plan is then pending until it ends.
    pub behavior_is_open: bool,
    /// The plan that becomes active when the current behavior ends.
    pub workflow_pending: Option<Workflow>,
    /// The work of the state that the session began from; its plan is then that of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<GivenWork>,
    /// How often a source of behaviors moved the session to a topic of its script.
    pub moves: u32,
}

/// Nothing is written for sessions without large outputs.
const fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// A kernel that a session started on a Jupyter server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedKernel {
    pub kernel_id: String,
    /// The address of the server.
    #[serde(default)]
    pub server: String,
    /// The session that started it: copies of a session do not use or end the kernel of another one.
    pub session_id: String,
}

/// A cell whose code ran to completion when it was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanCell {
    pub cell_id: String,
    /// The action of the script that added it; none if a model or a server did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_by: Option<String>,
}

/// The state machine of docs/notebook.md (`FSM`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fsm {
    /// Its state, in upper case.
    pub state: String,
    #[serde(default)]
    pub last_transition: Option<String>,
    /// The time of the last transition, in RFC 3339.
    #[serde(default)]
    pub timestamp: Option<String>,
}

impl Default for Fsm {
    fn default() -> Self {
        Self { state: IDLE.to_owned(), last_transition: None, timestamp: None }
    }
}

/// The location of a session in its plan (docs/protocol.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Location {
    /// The topic of the script from which the location was last set, as `phase/topic`. Entering a different topic changes it.
    #[serde(rename = "home")]
    pub topic_path: String,
    pub stage_id: Option<String>,
    pub step_id: Option<String>,
    /// The current behavior, or the last one.
    pub behavior_id: Option<String>,
    /// Its number within its step, from 1; 0 before the first.
    pub behavior_iteration: u32,
    /// The number of behaviors in the session, from which their ids are generated.
    pub behaviors: u64,
    /// The completed steps, in order of completion.
    pub completed_steps: Vec<String>,
    /// The completed stages, in order of completion.
    pub completed_stages: Vec<String>,
}

/// The section progress of a step (docs/protocol.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionProgress {
    pub current_section_id: Option<String>,
    /// Its number, from 1.
    pub current_section_number: Option<u64>,
    /// The completed sections, in order.
    pub completed_sections: Vec<String>,
    /// The expected number of sections, if given.
    pub total_expected: Option<u64>,
}

impl NotebookState {
    /// The state of a notebook that begins with these cells; none if there are none. Their code has run in another kernel, if it has.
    pub fn beginning_with(cells: &[Cell]) -> Option<Self> {
        let first = cells.first()?;
        let count = |is_counted: fn(&Cell) -> bool| cells.iter().filter(|cell| is_counted(cell)).count() as u64;
        let title = first.content.lines().next().and_then(|line| line.strip_prefix("# ")).map(str::trim);
        let title = title.filter(|_| first.kind == CellKind::Markdown);
        Some(Self {
            title: title.map(str::to_owned),
            title_cell: title.map(|_| first.id.clone()),
            cell_count: cells.len() as u64,
            chapter_count: count(|cell| cell.metadata.is_chapter),
            section_count: count(|cell| cell.metadata.is_section),
            last_code_cell: cells.iter().rfind(|cell| cell.kind == CellKind::Code).map(|cell| cell.id.clone()),
            last_cell_type: cells.last().map(|cell| cell.kind.name().to_owned()),
            executed: count(|cell| cell.ended.is_some()),
            ..Self::default()
        })
    }

    /// The id of the kernel that this session started on a Jupyter server.
    pub fn started_kernel(&self, session_id: &str) -> Option<&str> {
        let started = self.started_kernel.as_ref().filter(|started| started.session_id == session_id);
        started.map(|started| started.kernel_id.as_str())
    }

    pub fn set_started_kernel(&mut self, kernel_id: Option<String>, source: &KernelSource, session_id: &str) {
        let (server, session_id) = (source.server().unwrap_or_default().to_owned(), session_id.to_owned());
        self.started_kernel = kernel_id.map(|kernel_id| StartedKernel { kernel_id, server, session_id });
    }

    /// Stores an undeclared variable; null removes it.
    /// Errors: `too-many-variables` if there are too many variables or their total size is too large. Nothing is changed then.
    pub fn store_variable(&mut self, name: &str, value: Value) -> Result<(), ActionRejection> {
        if value.is_null() {
            self.variables.shift_remove(name);
            return Ok(());
        }
        let size = |name: &str, value: &Value| name.len() + json_size(value);
        let others = self.variables.iter().filter(|(other, _)| *other != name);
        let (count, bytes) = others
            .fold((1, size(name, &value)), |(count, bytes), (name, value)| (count + 1, bytes + size(name, value)));
        if !is_id(name) || count > MAX_VARIABLES || bytes > MAX_VARIABLES_BYTES {
            let message = msg!(
                "a variable was not saved: at most {MAX_VARIABLES} variables and {MAX_VARIABLES_BYTES} bytes are saved, and names must be one line"
            );
            return Err(ActionRejection::new("too-many-variables", message));
        }
        self.variables.insert(name.to_owned(), value);
        Ok(())
    }
}

impl SectionProgress {
    /// Starts a section: the previous one becomes completed, and this one is not completed.
    pub(crate) fn start(&mut self, id: String, number: u64) {
        self.completed_sections.retain(|done| *done != id);
        self.current_section_number = Some(number);
        let Some(previous) =
            self.current_section_id.replace(id).filter(|previous| Some(previous) != self.current_section_id.as_ref())
        else {
            return;
        };
        if !self.completed_sections.contains(&previous) {
            self.completed_sections.push(previous);
        }
        let excess = self.completed_sections.len().saturating_sub(MAX_COMPLETED_SECTIONS);
        self.completed_sections.drain(..excess);
    }
}
