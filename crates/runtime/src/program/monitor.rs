//! The `Monitor` trait: analyzes an answered turn in the background and advises the action's next turn (docs/monitors.md).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::program::analysis::{AnalysisResult, MonitorAnalysis, WatchedTurn};
use crate::program::clock::Clock;
use crate::program::models::ModelProviders;
use crate::program::outcome::Outcome;
use crate::program::program::{Phase, Program, Topic};
use crate::program::prompt::PromptNames;
use crate::program::transcript::{RecentTranscript, cut_in_the_middle};
use crate::program::turn::base_names;
use bcc_lang::template::front_matter::FeedbackTexts;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::quoting::quote;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::provider::Provider;
use bcc_llm::reply::shape::ReplyShape;

/// The default timeout of one analysis. Nothing waits for it; the timeout only ensures that it ends.
pub const DEFAULT_MONITOR_TIMEOUT: Duration = Duration::from_secs(120);

/// The maximum number of characters of the conversation before the question, in a monitor's prompt. Unlike the action, it gets the question,
/// the answer and the trend separately.
const MAX_CHAT_CHARS: usize = 1000;

/// Names that every monitor's template gets, beyond variables and the engine's names.
pub const MONITOR_NAMES: [&str; 19] = [
    "action_type",
    "action_id",
    "metrics",
    "progress_suggestion",
    "exit_reason",
    "target_variables",
    "targets",
    "question",
    "answer",
    "exit",
    "earlier_advice",
    "strategy",
    "min_completeness_requirement",
    "retry_strategy",
    "max_retry_count",
    "engagement_trend",
    "emotion_trend",
    "chat",
    "chat_history",
];

/// The monitor of one kind of action. The four operations are those of docs/monitors.md, "监控处理器接口设计".
#[async_trait]
pub trait Monitor: Send + Sync {
    /// The name of its template and of the schema of its replies: `ai_ask_monitor`.
    fn name(&self) -> &'static str;

    /// What its template receives beyond variables and the engine's names.
    fn prompt(&self) -> PromptNames;

    /// The texts of its advice if its template, which is in this language, does not define them.
    fn feedback_texts(&self, language: PromptLanguage) -> FeedbackTexts;

    /// The metrics of a turn, checked and complete; `None` if there is nothing to analyze: opening turns have none, and those of an
    /// unreadable reply contain nothing about the person.
    fn parse_metrics(&self, outcome: &Outcome, language: PromptLanguage) -> Option<Map<String, Value>>;

    /// Calls a model to analyze a turn. Never fails: any error gives the empty analysis and a log entry.
    async fn analyze_with_llm(&self, watched: &WatchedTurn, context: &MonitorContext) -> AnalysisResult;

    /// The advice for the action's next prompt; `None` if the analysis contains none. Whether the analysis requests an intervention is
    /// not considered (docs/monitors.md).
    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackTexts) -> Option<String>;

    /// Whether the remaining topic should be replanned (docs/monitors.md). Does not check whether the topic allows it.
    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool;
}

/// What an analysis needs besides [`WatchedTurn`]. It owns all data, because the analysis runs in the background.
pub struct MonitorContext {
    pub program: Arc<Program>,
    /// The names for its template: see [`monitor_names`].
    pub names: TemplateNames,
    /// The required shape of the reply: [`crate::program::action::WatchedConfig::shape`].
    pub shape: ReplyShape,
    /// The model to call, unless the template names another.
    pub provider: Arc<dyn Provider>,
    pub models: Arc<dyn ModelProviders>,
    pub clock: Arc<dyn Clock>,
    /// The sequence number of the analyzed outcome; the id of the call is derived from it.
    pub seq: u64,
    /// The last event when it was restarted because an answer was taken back; the earlier call keeps its id.
    pub restarted_at: Option<u64>,
    /// The time for all calls together: [`DEFAULT_MONITOR_TIMEOUT`].
    pub limit: Duration,
    pub recording: bool,
    /// The id of the session, for traces.
    pub session: String,
}

/// All names of a monitor's prompt that do not come from [`WatchedTurn`]: the variables at the start of the analysis, the goals,
/// the newest messages, the time.
pub fn monitor_names(
    program: &Program,
    phase: &Phase,
    topic: &Topic,
    recent: &RecentTranscript,
    scopes: Scopes,
    time: String,
) -> TemplateNames {
    let mut names = base_names(program, Some(phase), Some(topic), recent, scopes);
    // The question and the answer are shown separately.
    let chars = program.history_chars.min(MAX_CHAT_CHARS);
    let chat = recent.as_text_before_last_exchange(chars, &program.who, &program.user);
    let message = recent.last_user_message().unwrap_or_default();
    let chat: Arc<str> = chat.into();
    names.set_text("chat", Arc::clone(&chat));
    names.set_text("chat_history", chat);
    names.set_text("last_user_message", &*quote(&cut_in_the_middle(message, program.history_chars)));
    names.set_text("time", time);
    names
}
