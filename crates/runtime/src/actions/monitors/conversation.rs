//! The monitors of `ai_ask` and `ai_say` (docs/monitors.md). The first detects what keeps the person from giving the
//! information and advises how to ask; the second detects what the person does not understand and advises simpler wording.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::actions::monitors::analysis::{analyze, feedback, known_metrics};
use crate::program::analysis::{AnalysisResult, MonitorAnalysis, WatchedTurn};
use crate::program::monitor::{MONITOR_NAMES, Monitor, MonitorContext};
use crate::program::outcome::Outcome;
use crate::program::prompt::PromptNames;
use bcc_lang::template::front_matter::FeedbackTexts;
use bcc_lang::template::language::PromptLanguage;

/// The differences between the two monitors.
pub(crate) struct ConversationMonitor {
    name: &'static str,
    /// The names of its template in addition to [`MONITOR_NAMES`].
    names: &'static [&'static str],
    /// Heading, heading of the details, closing line; in Chinese and in English.
    texts: [[&'static str; 3]; 2],
    /// The metrics of a turn of its kind.
    metrics: &'static [&'static str],
    details: fn(&MonitorAnalysis) -> &Option<String>,
}

pub(crate) static AI_ASK: ConversationMonitor = ConversationMonitor {
    name: "ai_ask_monitor",
    names: &[],
    texts: [
        ["【Topic层策略建议】", "【建议调整方式】", "请根据以上建议调整你的提问方式。"],
        ["[Advice from the topic level]", "[A way to go about it]", "Adjust how you ask accordingly."],
    ],
    metrics: &["information_completeness", "user_engagement", "emotional_intensity", "reply_relevance"],
    details: |analysis| &analysis.modified_approach,
};

pub(crate) static AI_SAY: ConversationMonitor = ConversationMonitor {
    name: "ai_say_monitor",
    names: &["user_feedback_history"],
    texts: [
        ["【表达优化建议】", "【具体例子】", "请调整你的表达方式，确保用户能够理解。"],
        ["[Advice on how to put it]", "[An example]", "Adjust how you put it, so that it is understood."],
    ],
    metrics: &["user_engagement", "emotional_intensity", "understanding_level"],
    details: |analysis| &analysis.example_suggestion,
};

#[async_trait]
impl Monitor for ConversationMonitor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prompt(&self) -> PromptNames {
        PromptNames { common: &MONITOR_NAMES, names: self.names, outputs: false }
    }

    fn feedback_texts(&self, language: PromptLanguage) -> FeedbackTexts {
        let [chinese, english] = self.texts;
        let texts = match language {
            PromptLanguage::Zh => chinese,
            PromptLanguage::En => english,
        };
        let [heading, details, closing] = texts.map(str::to_owned);
        FeedbackTexts { heading, details, closing }
    }

    fn parse_metrics(&self, outcome: &Outcome, language: PromptLanguage) -> Option<Map<String, Value>> {
        known_metrics(outcome, self.metrics, language)
    }

    async fn analyze_with_llm(&self, watched: &WatchedTurn, context: &MonitorContext) -> AnalysisResult {
        analyze(self, watched, context).await
    }

    fn build_feedback_prompt(&self, analysis: &MonitorAnalysis, words: &FeedbackTexts) -> Option<String> {
        feedback(words, analysis.feedback_for_action.as_deref(), (self.details)(analysis).as_deref())
    }

    fn should_trigger_orchestration(&self, analysis: &MonitorAnalysis) -> bool {
        analysis.orchestration_needed
    }
}
