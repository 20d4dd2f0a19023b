//! What a loop of behaviors remembers from one turn to the next.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::behaviors::plan::PlanTarget;
use crate::actions::notebook::custom::Progress;
use crate::actions::notebook::perform::RunningAction;
use crate::notebook::protocol::feedback::Feedback;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopPoint {
    #[default]
    Begin,
    Ask,
    Carry,
    /// The source is asked what it thinks of the behavior.
    Reflect,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopFrame {
    pub at: LoopPoint,
    pub behaviors: u32,
    /// How many answers in a row could not be used.
    pub rubbish: u32,
    /// How many actions were carried out, in all behaviors together.
    pub executed: u32,
    /// How many of these did not do what they were to do.
    pub failed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
}

/// A behavior that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Current {
    /// Its id: that of the source, else ours.
    pub id: String,
    /// Which one of its step, from 1.
    pub iteration: u32,
    /// What it is for, as the source says.
    pub target: String,
    /// The step that it began in, when the session was in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_in: Option<PlanTarget>,
    /// The name under which the rest of its actions arrives; none when all of them stand in `actions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arriving: Option<String>,
    /// Actions that are still to be carried out, at most [`MOST_KEPT`] bytes of them.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub actions: VecDeque<Value>,
    /// The response without its actions: read again when the behavior ends.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub around: Value,
    /// How many actions the source has sent so far, whatever became of them.
    pub seen: u32,
    /// True counts and times, so far.
    pub counts: Feedback,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<ActionInProgress>,
    /// Whether it ended before all of its actions were there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// An action that takes several turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionInProgress {
    Code(Box<RunningAction>),
    /// A kind of the project runs.
    Custom {
        name: String,
        inputs: Box<Map<String, Value>>,
        progress: Progress,
        /// When it began, by the session's clock.
        began: u64,
    },
}

/// The most bytes of actions that a frame holds. A response with more is read as though it were a stream: the rest of it stays in
/// memory, so that no turn writes it again and again.
pub const MOST_KEPT: usize = 128 * 1024;
