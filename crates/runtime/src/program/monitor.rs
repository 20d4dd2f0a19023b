//! Monitors: what looks at an answered turn beside the conversation and advises its next turn (LANGUAGE.md section 9).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::clock::Clock;
use crate::program::event::ModelCall;
use crate::program::kind::PromptOf;
use crate::program::outcome::{ExitReason, Outcome, ProgressSuggestion};
use crate::program::program::{Phase, Program, Topic};
use crate::program::recent::{Recent, cut_in_the_middle};
use crate::program::services::Models;
use crate::program::turn::base_names;
use bcc_lang::template::front::FeedbackWords;
use bcc_lang::template::names::Names;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::provider::Provider;
use bcc_llm::reply::shape::ReplyShape;

/// How long one analysis may take when nobody says otherwise. Nothing waits for it; it must only come to an end.
pub const USUAL_LIMIT: Duration = Duration::from_secs(120);

/// How many of the newest metrics make a trend (LANGUAGE.md section 9).
pub const TREND: usize = 3;

/// Names that every monitor's template gets, beyond variables and the engine's names.
pub const MONITOR_NAMES: [&str; 14] = [
    "action_type",
    "action_id",
    "metrics",
    "progress_suggestion",
    "exit_reason",
    "target_variables",
    "strategy",
    "min_completeness_requirement",
    "retry_strategy",
    "max_retry_count",
    "engagement_trend",
    "emotion_trend",
    "chat",
    "chat_history",
];

/// What looks at the answered turns of one kind of action. The four operations are those of 004, "监控处理器接口设计".
#[async_trait]
pub trait Monitor: Send + Sync {
    /// The name of its template and of the schema of its replies: `ai_ask_monitor`.
    fn name(&self) -> &'static str;

    /// What its template gets beyond variables and the engine's names.
    fn prompt(&self) -> PromptOf;

    /// How its advice is put to the action where the template says nothing about that.
    fn words(&self) -> FeedbackWords;

    /// The system variables of a turn, checked and complete; `None` when there is nothing to analyse: an opening turn has none,
    /// and those of a reply that could not be read say nothing about the person.
    fn parse_metrics(&self, outcome: &Outcome) -> Option<Map<String, Value>>;

    /// Asks a model what to make of a turn. Never fails: whatever goes wrong gives the empty analysis and a line in the log.
    async fn analyze_with_llm(&self, watched: &Watched, context: &MonitorContext) -> Analysed;

    /// What the action's next prompt is told; `None` when the analysis advises nothing. Whether it calls an intervention
    /// needed does not matter (004, path 1: after every analysis).
    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackWords) -> Option<String>;

    /// Whether the rest of the topic should be planned anew (004, path 2). Whether the topic allows it is not looked at here.
    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool;
}

/// Everything that an analysis is about and that a resumed session cannot look up again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The kind of the action.
    pub action_type: String,
    /// Its id.
    pub action_id: String,
    /// Its instance path; empty with what an earlier release stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The round that was answered.
    pub round: u32,
    /// Its last round.
    pub max_rounds: u32,
    /// What [`Monitor::parse_metrics`] gave.
    pub metrics: Map<String, Value>,
    /// The model's own advice in that turn.
    #[serde(default)]
    pub progress_suggestion: ProgressSuggestion,
    /// Why the action ended, or what stands in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<ExitReason>,
    /// The names of the variables that the action wants.
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
    /// The topic's `strategy.max_retry_count`.
    #[serde(default)]
    pub max_retry_count: u32,
}

/// What an analysis needs besides [`Watched`]. It owns all of it: the analysis runs beside the session.
pub struct MonitorContext {
    /// The program, for its templates.
    pub program: Arc<Program>,
    /// What its template can name: see [`monitor_names`].
    pub names: Names,
    /// What the reply must look like: [`crate::program::action::WatchedConfig::shape`].
    pub shape: ReplyShape,
    /// The model that is asked, unless the template names another.
    pub provider: Arc<dyn Provider>,
    /// The models, for a template that names one.
    pub models: Arc<dyn Models>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The sequence number of the outcome that is analysed, from which the call gets its id.
    pub seq: u64,
    /// How long each call may take: [`USUAL_LIMIT`].
    pub limit: Duration,
    /// Whether the session is recorded.
    pub recording: bool,
}

/// Every name of a monitor's prompt that does not come from [`Watched`]: the variables as they are when the analysis begins,
/// the goals, the newest messages, the time.
pub fn monitor_names(
    program: &Program,
    phase: &Phase,
    topic: &Topic,
    recent: &Recent,
    scopes: Scopes,
    time: String,
) -> Names {
    let mut names = base_names(program, Some(phase), Some(topic), recent, scopes);
    let chat: Arc<str> = recent.as_text(program.history_chars, &program.who, &program.user).into();
    names.give_text("chat", Arc::clone(&chat));
    names.give_text("chat_history", chat);
    let said = recent.last_user_message().unwrap_or_default();
    names.give_text("last_user_message", cut_in_the_middle(said, program.history_chars));
    names.give_text("time", time);
    names
}

/// What came of an analysis.
#[derive(Clone, Debug, Default)]
pub struct Analysed {
    /// The analysis; the empty one after any failure.
    pub analysis: MonitorAnalysis,
    /// The calls, with their prompts and replies; none when no model was asked.
    pub calls: Vec<ModelCall>,
    /// Why no model was asked: the prompt could not be rendered. Holds nothing that a person or a model said.
    pub prompt_error: Option<String>,
    /// How the advice is put to the action; `None`: as the monitor itself would.
    pub words: Option<FeedbackWords>,
}

impl Analysed {
    /// Whether a reply could be read, so that the same metrics need not be analysed again.
    pub fn worked(&self) -> bool {
        self.calls.iter().any(|call| call.error.is_none())
    }
}

/// What a monitor makes of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitorAnalysis {
    /// Whether the topic should step in.
    pub intervention_needed: bool,
    /// Why.
    pub intervention_reason: InterventionReason,
    /// Whether other words are enough.
    pub intervention_level: InterventionLevel,
    /// What kind of step it should be.
    pub strategy_suggestion: StrategySuggestion,
    /// What the action is told.
    pub feedback_for_action: Option<String>,
    /// Another way to go about it, of an `ai_ask`.
    pub modified_approach: Option<String>,
    /// Whether the rest of the topic should be planned anew.
    pub orchestration_needed: bool,
    /// Why.
    pub orchestration_reason: Option<String>,
    /// What the plan might be.
    pub suggested_orchestration: Option<SuggestedOrchestration>,
    /// Whether the person has trouble understanding, of an `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub understanding_issue: Option<bool>,
    /// What the trouble is, of an `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_type: Option<String>,
    /// Words that may be easier, of an `ai_say`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example_suggestion: Option<String>,
    /// How the reply could be read.
    pub metadata: MonitorMetadata,
}

/// Why a monitor would step in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionReason {
    /// The person cannot or will not go on with this.
    Blocked,
    /// The person talks about something else.
    OffTopic,
    /// Too little was said.
    Insufficient,
    /// There is nothing the matter.
    #[default]
    Normal,
}

/// How deep it would go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterventionLevel {
    /// Other words of the same action.
    #[default]
    ActionFeedback,
    /// Another course of the topic.
    TopicOrchestration,
}

/// What kind of step a monitor advises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategySuggestion {
    /// Say it in another way.
    Rephrase,
    /// Comfort first.
    Comfort,
    /// Be content with what there is.
    AcceptPartial,
    /// Leave it.
    Skip,
    /// Go on.
    #[default]
    Continue,
}

/// What a plan for the rest of the topic might be, in the monitor's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuggestedOrchestration {
    /// insert, modify, skip or reorder.
    pub action: Option<String>,
    /// The kind of a new action.
    pub new_action_type: Option<String>,
    /// What the new action is about.
    pub new_action_theme: Option<String>,
    /// Where it goes.
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
    /// The analysis that stands in for one that failed (LANGUAGE.md section 9): no intervention, no feedback.
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
        let watched = Watched { action_type: "ai_ask".into(), action_id: "a".into(), round: 1, ..Watched::default() };
        let written = serde_json::to_string(&watched).unwrap();
        assert!(written.len() < 160, "{written}");
        assert_eq!(serde_json::from_str::<Watched>(&written).unwrap(), watched);
    }
}
