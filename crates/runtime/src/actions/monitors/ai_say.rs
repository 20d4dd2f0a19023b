//! The monitor of `ai_say`: sees where the person does not follow, and advises easier words (004,
//! "AiSayMonitorHandler设计").

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::actions::monitors::analysis::{analyse, feedback, known_metrics};
use crate::program::kind::PromptOf;
use crate::program::monitor::{Analysed, MONITOR_NAMES, Monitor, MonitorAnalysis, MonitorContext, Watched};
use crate::program::outcome::Outcome;
use bcc_lang::template::front::FeedbackWords;

/// The monitor.
pub struct AiSayMonitor;

/// What a turn of an `ai_say` says about its state.
const METRICS: [&str; 3] = ["user_engagement", "emotional_intensity", "understanding_level"];

#[async_trait]
impl Monitor for AiSayMonitor {
    fn name(&self) -> &'static str {
        "ai_say_monitor"
    }

    fn prompt(&self) -> PromptOf {
        PromptOf { common: &MONITOR_NAMES, names: &["user_feedback_history"], outputs: false }
    }

    fn words(&self) -> FeedbackWords {
        FeedbackWords {
            heading: "【表达优化建议】".to_owned(),
            details: "【具体例子】".to_owned(),
            closing: "请调整你的表达方式，确保用户能够理解。".to_owned(),
        }
    }

    fn parse_metrics(&self, outcome: &Outcome) -> Option<Map<String, Value>> {
        known_metrics(outcome, &METRICS)
    }

    async fn analyze_with_llm(&self, watched: &Watched, context: &MonitorContext) -> Analysed {
        analyse(self, watched, context).await
    }

    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackWords) -> Option<String> {
        feedback(words, analysis.feedback_for_action.as_deref(), analysis.example_suggestion.as_deref())
    }

    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool {
        analysis.orchestration_needed
    }
}
