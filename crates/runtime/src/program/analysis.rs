//! The input and the result of a monitor's analysis of a turn: plain data.

use bcc_lang::message::message::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::event::ModelCall;
use crate::program::outcome::{ExitReason, ProgressSuggestion};
use bcc_lang::template::front_matter::FeedbackTexts;
use bcc_llm::reply::exit::is_no_value;

/// How many of the newest metrics form a trend (docs/monitors.md).
pub(crate) const TREND: usize = 3;

/// The input of an analysis that a resumed session cannot look up again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchedTurn {
    pub action_type: String,
    pub action_id: String,
    /// Its instance path; empty if an earlier release stored it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub round: u32,
    pub max_rounds: u32,
    /// The result of `Monitor::parse_metrics`.
    pub metrics: Map<String, Value>,
    #[serde(default)]
    pub progress_suggestion: ProgressSuggestion,
    /// Why the action ended, or what prevents it from continuing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<ExitReason>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_variables: Vec<String>,
    /// The same variables with what they mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<MonitorTarget>,
    /// The message that the person answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// The action's `exit`, rendered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exit: String,
    /// The monitor's advice that was used in this visit, the newest last: at most `TREND`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_advice: Vec<UsedAdvice>,
    /// `user_engagement` of the newest turns, the newest last: at most `TREND`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engagement_trend: Vec<String>,
    /// `emotional_intensity` of the newest turns, the newest last: at most `TREND`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emotion_trend: Vec<String>,
    /// The person's answers to the action so far, the newest last.
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

/// A variable that the analyzed action extracts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorTarget {
    pub get: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub define: String,
    #[serde(default)]
    pub required: bool,
}

/// Advice that reached a prompt, and what followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedAdvice {
    /// The action and the round that the advice was about.
    pub action_id: String,
    pub round: u32,
    pub advice: String,
    /// The number of the turn that used it.
    pub turn: u64,
    /// The `progress_suggestion` of the first turn after that; none so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_suggestion: Option<ProgressSuggestion>,
    /// The `user_engagement` of that turn.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engagement: String,
}

#[derive(Clone, Debug, Default)]
pub struct AnalysisResult {
    /// The analysis; empty after any failure.
    pub analysis: MonitorAnalysis,
    /// The model calls, with their prompts and replies; empty if no model was called.
    pub calls: Vec<ModelCall>,
    /// Why no model was called: the prompt could not be rendered. Contains no text of a person or a model.
    pub prompt_error: Option<Message>,
    /// How the advice is worded for the action; `None`: the monitor's own texts.
    pub feedback_texts: Option<FeedbackTexts>,
}

impl AnalysisResult {
    /// Whether a reply could be read, so that the same metrics need not be analyzed again.
    pub fn succeeded(&self) -> bool {
        self.calls.iter().any(|call| call.error.is_none())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorAnalysis {
    pub intervention_needed: bool,
    pub intervention_reason: InterventionReason,
    /// Whether rephrasing is enough.
    pub intervention_level: InterventionLevel,
    pub strategy_suggestion: StrategySuggestion,
    pub feedback_for_action: Option<String>,
    /// A different approach, for an `ai_ask`.
    pub modified_approach: Option<String>,
    pub orchestration_needed: bool,
    pub orchestration_reason: Option<String>,
    pub suggested_orchestration: Option<SuggestedOrchestration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understanding_issue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// Simpler wording, for an `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example_suggestion: Option<String>,
    pub metadata: MonitorMetadata,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionReason {
    /// The person cannot or does not want to continue with this.
    Blocked,
    OffTopic,
    Insufficient,
    #[default]
    Normal,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionLevel {
    /// Different wording in the same action.
    #[default]
    ActionFeedback,
    /// A change of the plan of the topic.
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

/// What a plan for the remaining topic might be, as the monitor suggests it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuggestedOrchestration {
    /// `insert`, `modify`, `skip` or `reorder`.
    pub action: Option<String>,
    pub new_action_type: Option<String>,
    pub new_action_theme: Option<String>,
    pub insert_position: Option<String>,
}

/// How a monitor's reply was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorMetadata {
    /// Whether every strategy failed.
    pub parse_error: bool,
    /// The number of the strategy that succeeded, or of those that were tried; 0 if there was no reply.
    pub parse_retry_count: u8,
}

impl MonitorAnalysis {
    /// The analysis used after a failure (docs/monitors.md): no intervention, no feedback.
    pub fn empty(metadata: MonitorMetadata) -> Self {
        Self { metadata, ..Self::default() }
    }

    /// The analysis in a reply. A field with an invalid value, which the schema of a project may allow, counts as missing, and so does a
    /// text such as "null" or "N/A".
    pub fn from_reply(reply: &Map<String, Value>, parse_retry_count: u8) -> Self {
        fn field<T: DeserializeOwned + Default>(reply: &Map<String, Value>, name: &str) -> T {
            reply.get(name).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
        }
        let text = |name: &str| field::<Option<String>>(reply, name).filter(|text| !is_no_value(text));
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
    fn an_empty_analysis_advises_nothing_and_reports_how_parsing_failed() {
        let metadata = MonitorMetadata { parse_error: true, parse_retry_count: 3 };
        let written = serde_json::to_value(MonitorAnalysis::empty(metadata)).unwrap();
        assert_eq!(written["intervention_needed"], json!(false));
        assert_eq!(written["feedback_for_action"], Value::Null);
        assert_eq!(written["orchestration_needed"], json!(false));
        assert_eq!(written["metadata"], json!({ "parse_error": true, "parse_retry_count": 3 }));
        assert_eq!(serde_json::from_value::<MonitorAnalysis>(written).unwrap(), MonitorAnalysis::empty(metadata));
    }

    #[test]
    fn a_field_with_an_invalid_value_counts_as_missing() {
        let reply = json!({
            "intervention_needed": "sure", "intervention_reason": "tired", "strategy_suggestion": "comfort",
            "feedback_for_action": "  ", "modified_approach": 5, "suggested_orchestration": "insert",
        });
        let analysis = MonitorAnalysis::from_reply(reply.as_object().unwrap(), 2);
        let expected = MonitorAnalysis {
            strategy_suggestion: StrategySuggestion::Comfort,
            metadata: MonitorMetadata { parse_error: false, parse_retry_count: 2 },
            ..MonitorAnalysis::default()
        };
        assert_eq!(analysis, expected);
    }

    #[test]
    fn a_word_for_nothing_is_no_advice() {
        for word in ["null", "None", " N/A. ", "-", "未提及"] {
            let reply = json!({ "feedback_for_action": word, "modified_approach": word, "example_suggestion": word });
            let analysis = MonitorAnalysis::from_reply(reply.as_object().unwrap(), 1);
            let texts = [analysis.feedback_for_action, analysis.modified_approach, analysis.example_suggestion];
            assert_eq!(texts, [None, None, None], "{word}");
        }
    }

    #[test]
    fn a_watched_turn_is_stored_compactly_and_read_again() {
        let watched =
            WatchedTurn { action_type: "ai_ask".into(), action_id: "a".into(), round: 1, ..WatchedTurn::default() };
        let written = serde_json::to_string(&watched).unwrap();
        assert!(written.len() < 160, "{written}");
        assert_eq!(serde_json::from_str::<WatchedTurn>(&written).unwrap(), watched);
    }
}
