//! Why the last answer did not end its action, for the next prompt (`last_decision` in docs/templates.md).

use serde::{Deserialize, Serialize};

use crate::program::outcome::ProgressSuggestion;
use bcc_lang::template::language::PromptLanguage;

/// The decision about the last answer. It is stored between turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LastDecision {
    /// The required outputs for whose lack an EXIT was not accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub suggestion: ProgressSuggestion,
    /// The number of successive answers with this suggestion.
    #[serde(skip_serializing_if = "is_default")]
    pub rounds: u32,
}

impl LastDecision {
    /// The decision about the next answer: an EXIT that was not accepted lacks `missing`.
    pub(crate) fn next(&self, missing: Vec<String>, suggestion: ProgressSuggestion) -> Self {
        let rounds = if suggestion == self.suggestion { self.rounds.saturating_add(1) } else { 1 };
        Self { missing, suggestion, rounds }
    }

    /// The text for a prompt; empty if there is nothing to report.
    pub(crate) fn text(&self, language: PromptLanguage) -> String {
        let mut lines = Vec::new();
        if !self.missing.is_empty() {
            lines.push(match language {
                PromptLanguage::Zh => {
                    format!("上一次的 EXIT \"YES\" 没有被接受：必需的 {} 还没有得到。", self.missing.join("、"))
                }
                PromptLanguage::En => format!(
                    "The last EXIT \"YES\" was not accepted: nothing has been recorded yet for {}, which the script requires.",
                    self.missing.join(", ")
                ),
            });
        }
        let rounds = self.rounds;
        let times = if rounds == 1 { "answer" } else { "answers in a row" };
        match (self.suggestion, language) {
            (ProgressSuggestion::Blocked, PromptLanguage::Zh) => {
                lines.push(format!("已连续 {rounds} 轮判断为 blocked。"));
            }
            (ProgressSuggestion::OffTopic, PromptLanguage::Zh) => {
                lines.push(format!("已连续 {rounds} 轮判断为 off_topic。"));
            }
            (ProgressSuggestion::Blocked, PromptLanguage::En) => {
                lines.push(format!("So far, {rounds} {times} judged as blocked."));
            }
            (ProgressSuggestion::OffTopic, PromptLanguage::En) => {
                lines.push(format!("So far, {rounds} {times} judged as off_topic."));
            }
            (ProgressSuggestion::ContinueNeeded | ProgressSuggestion::Completed, _) => {}
        }
        lines.join("\n")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_obstacles_are_counted_and_everything_else_is_silent() {
        let blocked = LastDecision::default()
            .next(vec![], ProgressSuggestion::Blocked)
            .next(vec!["age".into(), "名字".into()], ProgressSuggestion::Blocked);
        assert_eq!(
            blocked.text(PromptLanguage::En),
            "The last EXIT \"YES\" was not accepted: nothing has been recorded yet for age, 名字, which the script requires.\n\
             So far, 2 answers in a row judged as blocked."
        );
        assert_eq!(
            blocked.text(PromptLanguage::Zh),
            "上一次的 EXIT \"YES\" 没有被接受：必需的 age、名字 还没有得到。\n已连续 2 轮判断为 blocked。"
        );
        let off_topic = blocked.next(vec![], ProgressSuggestion::OffTopic);
        assert_eq!(off_topic.text(PromptLanguage::En), "So far, 1 answer judged as off_topic.");
        assert_eq!(off_topic.next(vec![], ProgressSuggestion::ContinueNeeded).text(PromptLanguage::En), "");
        assert_eq!(LastDecision::default().text(PromptLanguage::Zh), "");
    }
}
