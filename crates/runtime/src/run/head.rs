//! The small part of a session's state that is written with every commit.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::program::event::Summary;
use crate::program::limits::Budget;
use crate::run::mailbox::PendingAnalysis;
use crate::run::planner::RequestedPlan;

/// The status of a session (docs/sessions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A turn is due.
    Running,
    /// It waits for the person.
    WaitingInput,
    /// It waits for a decision about an approval.
    WaitingApproval,
    /// It waits for a time.
    WaitingTime,
    /// The model could not be reached, or the budget is used up; it can be resumed.
    Stopped,
    /// It reached its end.
    Completed,
    /// It cannot continue.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl SessionStatus {
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::WaitingInput,
        Self::WaitingApproval,
        Self::WaitingTime,
        Self::Stopped,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name in events, exports and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingInput => "waiting_input",
            Self::WaitingApproval => "waiting_approval",
            Self::WaitingTime => "waiting_time",
            Self::Stopped => "stopped",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the status is final.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether it waits for an answer, a decision or a time.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingInput | Self::WaitingApproval | Self::WaitingTime)
    }
}

/// Counters, and what the session waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The `answer_id` of the expected answer.
    pub waiting: Option<String>,
    /// Whether the expected answer is about an open external effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_effect: bool,
    /// The key of the action in a branch whose effect the expected answer is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_in_branch: Option<String>,
    /// How many numbers of answer ids do not belong to an answer, because answers were taken back.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub skipped_answer_ids: u64,
    /// Whether the newest message is an answer that no turn has processed yet.
    pub pending: bool,
    /// The number of values that must be masked.
    #[serde(default)]
    pub hidden: u64,
    pub messages: u64,
    pub turns: u64,
    pub model_calls: u64,
    /// Tokens of prompts so far, if counted by providers.
    pub tokens_in: u64,
    /// Tokens of replies so far, if counted by providers.
    pub tokens_out: u64,
    /// Milliseconds so far during which a process ran the session.
    #[serde(default)]
    pub ms: u64,
    /// The budget: from its script, or from whoever started or resumed it.
    #[serde(default)]
    pub budget: Budget,
    /// The key of a trigger's insertion that may finish although the budget is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdrawn: Option<String>,
    /// Possibly circular routes since the newest answer.
    #[serde(default, rename = "hops", skip_serializing_if = "is_zero")]
    pub route_hops: u32,
    /// Descriptions of the newest of them.
    #[serde(default, rename = "way", skip_serializing_if = "Vec::is_empty")]
    pub recent_routes: Vec<String>,
    /// Analyses that were requested and have no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<PendingAnalysis>,
    /// The plan that was requested and is not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<RequestedPlan>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fired: BTreeMap<String, Fired>,
    /// The end that was decided, while something runs before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The effects that the session which this one repeats has had from there on, and this one has not announced yet, by
    /// [`earlier_effect`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier_effects: BTreeMap<String, u64>,
}

/// How an effect is recognized in a session that repeats another one: whatever an edited script makes of its details, the same action must
/// not do the same kind of thing again without a question.
pub fn earlier_effect(kind: &str, action_id: &str) -> String {
    format!("{kind} {action_id}")
}

/// The end of a session that was decided, while something has to run before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The status that follows: failed or cancelled.
    pub(crate) status: SessionStatus,
    /// Why the session ends.
    #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Message>,
    /// Whether compensations run.
    pub(crate) compensate: bool,
    /// The actions whose compensations failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    pub times: u64,
    /// The number of answers when it fired, or when its insertion ended: it does not fire again before the next one.
    pub answers: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero_u64(count: &u64) -> bool {
    *count == 0
}

impl Head {
    /// Adds the tokens of a call. They come from a server, which may report any number.
    pub(crate) fn count_tokens(&mut self, tokens_in: u64, tokens_out: u64) {
        self.tokens_in = self.tokens_in.saturating_add(tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(tokens_out);
    }

    pub fn summary(&self, answers: u64, reason: Option<Message>) -> Summary {
        Summary {
            answers,
            turns: self.turns,
            model_calls: self.model_calls,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            active_ms: self.ms,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::frames::Frame;
    use crate::run::monitors::Advice;

    /// Stores of earlier releases have these names.
    #[test]
    fn renamed_fields_keep_their_names_in_the_store() {
        let plan = json!({ "home": "p/t", "action_id": "a", "round": 1, "analysis": null });
        let read: RequestedPlan = serde_json::from_value(plan.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), plan);

        let advice = json!({
            "seq": 2, "about": 1, "text": "", "action_id": "a", "action_type": "ai_ask", "round": 1, "analysis": null,
        });
        let read: Advice = serde_json::from_value(advice.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), advice);

        let head = Head { route_hops: 1, recent_routes: vec!["a → retry".into()], ..Head::default() };
        let stored = serde_json::to_value(&head).unwrap();
        assert_eq!((&stored["hops"], &stored["way"]), (&json!(1), &json!(["a → retry"])));
        assert_eq!(serde_json::from_value::<Head>(stored).unwrap(), head);

        let mut stored = serde_json::to_value(Frame::default()).unwrap();
        let fields = json!({
            "barred": true, "moods": [{ "engagement": "", "emotion": "" }],
            "insertion": { "routed": { "reason": "off_topic", "completed": false, "then": null } },
        });
        stored.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let read: Frame = serde_json::from_value(stored.clone()).unwrap();
        assert!(read.not_started && read.trend.len() == 1);
        assert_eq!(serde_json::to_value::<Frame>(read).unwrap(), stored);
    }
}
