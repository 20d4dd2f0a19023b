//! The state that a behavior loop stores between turns.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::behaviors::plan::PlanTarget;
use crate::actions::behaviors::planning::PlannedTask;
use crate::actions::notebook::custom::Progress;
use crate::actions::notebook::perform::RunningAction;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::state::NotebookState;
use bcc_lang::value::exact::ExactValues;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoopPoint {
    #[default]
    #[serde(rename = "begin")]
    Start,
    Ask,
    #[serde(rename = "carry")]
    Perform,
    /// The source is asked for a reflection on the behavior.
    Reflect,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoopFrame {
    pub at: LoopPoint,
    pub behaviors: u32,
    /// The number of unusable answers in a row.
    #[serde(rename = "rubbish")]
    pub unusable_answers: u32,
    /// The number of actions performed in all behaviors.
    pub executed: u32,
    /// The number of these actions that failed.
    pub failed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// The task of the next behavior, if its server has planned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<PlannedTask>,
    /// The number of plans since the last behavior.
    #[serde(skip_serializing_if = "is_zero")]
    pub plans: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde passes it.
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The behavior in progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Current {
    /// Its id: the one that the source gave, else a generated one.
    pub id: String,
    /// Its number within its step, from 1.
    pub iteration: u32,
    /// Its target, as the source gave it.
    pub target: String,
    /// The step in which it started, if the session was in one.
    #[serde(rename = "began_in", skip_serializing_if = "Option::is_none")]
    pub start_step: Option<PlanTarget>,
    /// The stage in which it started, if the session was in one without a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_stage: Option<String>,
    /// The goal of that step in the plan, for a judgement after the plan has changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// The name of the stream that delivers the remaining actions; `None` when `actions` holds all of them.
    #[serde(rename = "arriving", skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The actions that remain to be performed, at most `MAX_STORED_BYTES` bytes.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub actions: VecDeque<Value>,
    /// The response without its actions: it is read again when the behavior ends.
    #[serde(rename = "around", skip_serializing_if = "Value::is_null")]
    pub response: Value,
    /// The number of actions received from the source so far, including rejected ones.
    #[serde(rename = "seen")]
    pub received: u32,
    /// The measured counts and times so far.
    pub counts: Feedback,
    #[serde(rename = "under_way", skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<ActionInProgress>,
    /// Whether it ended before all of its actions were received.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

impl Current {
    /// The state as its judgement sees it: in the step in which it started, wherever its actions moved the session.
    pub(crate) fn judged(&self, state: NotebookState) -> NotebookState {
        let (stage, step) = match &self.start_step {
            Some(start) => (Some(start.stage.as_str()), Some(start.step.as_str())),
            None => (self.start_stage.as_deref(), None),
        };
        let mut judged = state.at_step(stage, step);
        judged.location.behavior_id = Some(self.id.clone());
        judged.location.behavior_iteration = self.iteration;
        judged
    }
}

/// An action that takes several turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionInProgress {
    Code(Box<RunningAction>),
    /// An action kind of the project.
    Custom {
        name: String,
        inputs: Box<ExactValues>,
        progress: Progress,
        /// When it started, on the clock of the session.
        began: u64,
    },
}

/// The maximum size of the actions in a frame, in bytes. The actions of a larger response stay in memory and are read like a
/// stream, so that they are not written again in each turn.
pub(crate) const MAX_STORED_BYTES: usize = 128 * 1024;
