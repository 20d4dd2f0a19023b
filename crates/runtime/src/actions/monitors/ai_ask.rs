//! The monitor of `ai_ask`: sees what keeps the information from coming, and advises how to ask (004,
//! "AiAskMonitorHandler设计").

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::actions::monitors::analysis::{analyse, feedback, known_metrics};
use crate::program::kind::PromptOf;
use crate::program::monitor::{Analysed, MONITOR_NAMES, Monitor, MonitorAnalysis, MonitorContext, Watched};
use crate::program::outcome::Outcome;
use bcc_lang::template::front::FeedbackWords;

/// The monitor.
pub struct AiAskMonitor;

/// What a turn of an `ai_ask` says about its state.
const METRICS: [&str; 4] = ["information_completeness", "user_engagement", "emotional_intensity", "reply_relevance"];

#[async_trait]
impl Monitor for AiAskMonitor {
    fn name(&self) -> &'static str {
        "ai_ask_monitor"
    }

    fn prompt(&self) -> PromptOf {
        PromptOf { common: &MONITOR_NAMES, names: &[], outputs: false }
    }

    fn words(&self) -> FeedbackWords {
        FeedbackWords {
            heading: "【Topic层策略建议】".to_owned(),
            details: "【建议调整方式】".to_owned(),
            closing: "请根据以上建议调整你的提问方式。".to_owned(),
        }
    }

    fn parse_metrics(&self, outcome: &Outcome) -> Option<Map<String, Value>> {
        known_metrics(outcome, &METRICS)
    }

    async fn analyze_with_llm(&self, watched: &Watched, context: &MonitorContext) -> Analysed {
        analyse(self, watched, context).await
    }

    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackWords) -> Option<String> {
        feedback(words, analysis.feedback_for_action.as_deref(), analysis.modified_approach.as_deref())
    }

    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool {
        analysis.orchestration_needed
    }
}
