//! Monitors: what looks at an answered turn beside the conversation and advises its next turn (docs/monitors.md).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::program::analysis::{AnalysisResult, MonitorAnalysis, WatchedTurn};
use crate::program::clock::Clock;
use crate::program::models::ModelProviders;
use crate::program::outcome::Outcome;
use crate::program::program::{Phase, Program, Topic};
use crate::program::prompt::PromptOf;
use crate::program::transcript::{RecentTranscript, cut_in_the_middle};
use crate::program::turn::base_names;
use bcc_lang::template::front_matter::FeedbackTexts;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::provider::Provider;
use bcc_llm::reply::shape::ReplyShape;

/// How long one analysis may take when nobody says otherwise. Nothing waits for it; it must only come to an end.
pub const USUAL_LIMIT: Duration = Duration::from_secs(120);

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

/// What looks at the answered turns of one kind of action. The four operations are those of docs/monitors.md, "监控处理器接口设计".
#[async_trait]
pub trait Monitor: Send + Sync {
    /// The name of its template and of the schema of its replies: `ai_ask_monitor`.
    fn name(&self) -> &'static str;

    /// What its template gets beyond variables and the engine's names.
    fn prompt(&self) -> PromptOf;

    /// How its advice is put to the action where the template says nothing about that.
    fn words(&self) -> FeedbackTexts;

    /// The system variables of a turn, checked and complete; `None` when there is nothing to analyse: an opening turn has none,
    /// and those of a reply that could not be read say nothing about the person.
    fn parse_metrics(&self, outcome: &Outcome) -> Option<Map<String, Value>>;

    /// Asks a model what to make of a turn. Never fails: whatever goes wrong gives the empty analysis and a line in the log.
    async fn analyze_with_llm(&self, watched: &WatchedTurn, context: &MonitorContext) -> AnalysisResult;

    /// What the action's next prompt is told; `None` when the analysis advises nothing. Whether it calls an intervention
    /// needed does not matter (docs/monitors.md).
    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackTexts) -> Option<String>;

    /// Whether the rest of the topic should be planned anew (docs/monitors.md). Whether the topic allows it is not looked at here.
    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool;
}

/// What an analysis needs besides [`WatchedTurn`]. It owns all of it: the analysis runs beside the session.
pub struct MonitorContext {
    pub program: Arc<Program>,
    /// What its template can name: see [`monitor_names`].
    pub names: TemplateNames,
    /// What the reply must look like: [`crate::program::action::WatchedConfig::shape`].
    pub shape: ReplyShape,
    /// The model that is asked, unless the template names another.
    pub provider: Arc<dyn Provider>,
    pub models: Arc<dyn ModelProviders>,
    pub clock: Arc<dyn Clock>,
    /// The sequence number of the outcome that is analysed, from which the call gets its id.
    pub seq: u64,
    /// How long each call may take: [`USUAL_LIMIT`].
    pub limit: Duration,
    pub recording: bool,
}

/// Every name of a monitor's prompt that does not come from [`WatchedTurn`]: the variables as they are when the analysis begins,
/// the goals, the newest messages, the time.
pub fn monitor_names(
    program: &Program,
    phase: &Phase,
    topic: &Topic,
    recent: &RecentTranscript,
    scopes: Scopes,
    time: String,
) -> TemplateNames {
    let mut names = base_names(program, Some(phase), Some(topic), recent, scopes);
    let chat: Arc<str> = recent.as_text(program.history_chars, &program.who, &program.user).into();
    names.give_text("chat", Arc::clone(&chat));
    names.give_text("chat_history", chat);
    let said = recent.last_user_message().unwrap_or_default();
    names.give_text("last_user_message", cut_in_the_middle(said, program.history_chars));
    names.give_text("time", time);
    names
}
