//! What a monitor is given of a turn, and what it makes of it: plain data.

use bcc_lang::message::message::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::event::ModelCall;
use crate::program::outcome::{ExitReason, ProgressSuggestion};
use bcc_lang::template::front_matter::FeedbackTexts;

/// How many of the newest metrics make a trend (docs/monitors.md).
pub const TREND: usize = 3;

/// Everything that an analysis is about and that a resumed session cannot look up again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedTurn {
    pub action_type: String,
    pub action_id: String,
    /// Its instance path; empty with what an earlier release stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub round: u32,
    pub max_rounds: u32,
    /// What `Monitor::parse_metrics` gave.
    pub metrics: Map<String, Value>,
    #[serde(default)]
    pub progress_suggestion: ProgressSuggestion,
    /// Why the action ended, or what stands in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<ExitReason>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_variables: Vec<String>,
    /// `user_engagement` of the newest turns, the newest last: at most [`TREND`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engagement_trend: Vec<String>,
    /// `emotional_intensity` of the newest turns, the newest last: at most [`TREND`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emotion_trend: Vec<String>,
    /// What the person answered to the action so far, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_feedback_history: Vec<String>,
    /// The topic's `strategy.text`, rendered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// The topic's `strategy.min_completeness_requirement`, rendered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub min_completeness_requirement: String,
    /// The topic's `strategy.retry_strategy`, rendered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub retry_strategy: String,
    #[serde(default)]
    pub max_retry_count: u32,
}

#[derive(Clone, Debug, Default)]
pub struct AnalysisResult {
    /// The analysis; the empty one after any failure.
    pub analysis: MonitorAnalysis,
    /// The calls, with their prompts and replies; none when no model was asked.
    pub calls: Vec<ModelCall>,
    /// Why no model was asked: the prompt could not be rendered. Holds nothing that a person or a model said.
    pub prompt_error: Option<Message>,
    /// How the advice is put to the action; `None`: as the monitor itself would.
    pub words: Option<FeedbackTexts>,
}

impl AnalysisResult {
    /// Whether a reply could be read, so that the same metrics need not be analysed again.
    pub fn worked(&self) -> bool {
        self.calls.iter().any(|call| call.error.is_none())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorAnalysis {
    pub intervention_needed: bool,
    pub intervention_reason: InterventionReason,
    /// Whether other words are enough.
    pub intervention_level: InterventionLevel,
    pub strategy_suggestion: StrategySuggestion,
    pub feedback_for_action: Option<String>,
    /// Another way to go about it, of an `ai_ask`.
    pub modified_approach: Option<String>,
    pub orchestration_needed: bool,
    pub orchestration_reason: Option<String>,
    pub suggested_orchestration: Option<SuggestedOrchestration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understanding_issue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// Words that may be easier, of an `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example_suggestion: Option<String>,
    pub metadata: MonitorMetadata,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionReason {
    /// The person cannot or will not go on with this.
    Blocked,
    OffTopic,
    Insufficient,
    #[default]
    Normal,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionLevel {
    /// Other words of the same action.
    #[default]
    ActionFeedback,
    /// Another course of the topic.
    TopicOrchestration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategySuggestion {
    Rephrase,
    Comfort,
    AcceptPartial,
    Skip,
    #[default]
    Continue,
}

/// What a plan for the rest of the topic might be, in the monitor's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuggestedOrchestration {
    /// insert, modify, skip or reorder.
    pub action: Option<String>,
    pub new_action_type: Option<String>,
    pub new_action_theme: Option<String>,
    pub insert_position: Option<String>,
}

/// How a monitor's reply could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorMetadata {
    /// Whether no strategy could.
    pub parse_error: bool,
    /// The strategy that could, or how many were tried; 0 when there was no reply.
    pub parse_retry_count: u8,
}

impl MonitorAnalysis {
    /// The analysis that stands in for one that failed (docs/monitors.md): no intervention, no feedback.
    pub fn empty(metadata: MonitorMetadata) -> Self {
        Self { metadata, ..Self::default() }
    }

    /// The analysis in a reply. A field that is not what it must be, which the schema of a project may let through, counts as
    /// missing.
    pub fn of_reply(reply: &Map<String, Value>, parse_retry_count: u8) -> Self {
        fn field<T: DeserializeOwned + Default>(reply: &Map<String, Value>, name: &str) -> T {
            reply.get(name).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
        }
        let text = |name: &str| field::<Option<String>>(reply, name).filter(|text| !text.trim().is_empty());
        Self {
            intervention_needed: field(reply, "intervention_needed"),
            intervention_reason: field(reply, "intervention_reason"),
            intervention_level: field(reply, "intervention_level"),
            strategy_suggestion: field(reply, "strategy_suggestion"),
            feedback_for_action: text("feedback_for_action"),
            modified_approach: text("modified_approach"),
            orchestration_needed: field(reply, "orchestration_needed"),
            orchestration_reason: text("orchestration_reason"),
            suggested_orchestration: field(reply, "suggested_orchestration"),
            understanding_issue: field(reply, "understanding_issue"),
            issue_type: text("issue_type"),
            example_suggestion: text("example_suggestion"),
            metadata: MonitorMetadata { parse_error: false, parse_retry_count },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_analysis_advises_nothing_and_says_how_reading_failed() {
        let metadata = MonitorMetadata { parse_error: true, parse_retry_count: 3 };
        let written = serde_json::to_value(MonitorAnalysis::empty(metadata)).unwrap();
        assert_eq!(written["intervention_needed"], json!(false));
        assert_eq!(written["feedback_for_action"], Value::Null);
        assert_eq!(written["orchestration_needed"], json!(false));
        assert_eq!(written["metadata"], json!({ "parse_error": true, "parse_retry_count": 3 }));
        assert_eq!(serde_json::from_value::<MonitorAnalysis>(written).unwrap(), MonitorAnalysis::empty(metadata));
    }

    #[test]
    fn a_field_that_is_not_what_it_must_be_counts_as_missing() {
        let reply = json!({
            "intervention_needed": "sure", "intervention_reason": "tired", "strategy_suggestion": "comfort",
            "feedback_for_action": "  ", "modified_approach": 5, "suggested_orchestration": "insert",
        });
        let analysis = MonitorAnalysis::of_reply(reply.as_object().unwrap(), 2);
        let expected = MonitorAnalysis {
            strategy_suggestion: StrategySuggestion::Comfort,
            metadata: MonitorMetadata { parse_error: false, parse_retry_count: 2 },
            ..MonitorAnalysis::default()
        };
        assert_eq!(analysis, expected);
    }

    #[test]
    fn what_is_watched_is_written_small_and_read_again() {
        let watched =
            WatchedTurn { action_type: "ai_ask".into(), action_id: "a".into(), round: 1, ..WatchedTurn::default() };
        let written = serde_json::to_string(&watched).unwrap();
        assert!(written.len() < 160, "{written}");
        assert_eq!(serde_json::from_str::<WatchedTurn>(&written).unwrap(), watched);
    }
}
