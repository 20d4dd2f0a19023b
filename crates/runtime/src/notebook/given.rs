//! The notebook with which a session begins, and where the work on it goes on.

use serde::{Deserialize, Serialize};

use crate::notebook::cell::Cell;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::state::NotebookState;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenNotebook {
    pub state: NotebookState,
    /// In order, numbered from 1.
    pub cells: Vec<Cell>,
}

impl GivenNotebook {
    /// A notebook with these cells, and nothing else.
    pub fn of_cells(cells: Vec<Cell>) -> Option<Self> {
        Some(Self { state: NotebookState::beginning_with(&cells)?, cells })
    }
}

/// What a state of the protocol says about the work that goes on from it (docs/protocol.md, "State files"). The plan of such a
/// session is that of the state, not the phases and topics of its script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GivenWork {
    /// What is to be achieved while no step of the plan says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The first question of the session; none once it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<FirstQuestion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FirstQuestion {
    pub asks_for: AskedPart,
    /// The results of the last behavior.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// What the current behavior should achieve.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedPart {
    /// The next behavior, which a server may plan first.
    #[default]
    Behavior,
    /// The actions of the current behavior.
    Actions,
    /// The judgement of the current behavior, which is completed.
    Judgement,
}
