//! What bounds a session and its topics, as it runs (docs/budgets.md).

use serde::{Deserialize, Serialize};

use bcc_lang::expr::parse::Expr;
use bcc_lang::script::limits::WrittenBudget;
use bcc_lang::source::span::Spanned;
use bcc_lang::template::text::Text;

/// How often `retry` begins an action again when its topic's strategy does not say.
pub const USUAL_RETRIES: u32 = 2;

/// What a session may use; each limit is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// The most tokens, of prompts and replies together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most minutes while some process drives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
}

impl Budget {
    /// What a script allows; no limit where it says nothing.
    pub fn of(written: Option<&WrittenBudget>) -> Self {
        let limit = |of: fn(&WrittenBudget) -> &Option<Spanned<u32>>| {
            written.and_then(|written| of(written).as_ref()).map(|limit| u64::from(limit.value))
        };
        Self {
            turns: limit(|budget| &budget.turns),
            model_calls: limit(|budget| &budget.model_calls),
            tokens: limit(|budget| &budget.tokens),
            minutes: limit(|budget| &budget.minutes),
        }
    }
}

/// How much a topic matters when time runs short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// It is skipped.
    Low,
    /// Each of its actions has one round.
    #[default]
    Medium,
    /// It runs whole.
    High,
}

impl Priority {
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High].into_iter().find(|priority| priority.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[derive(Clone, Default)]
pub struct Strategy {
    /// `text`, or the whole when it is written as text.
    pub text: Option<Text>,
    /// `min_completeness_requirement`: words for the monitor; no code compares them.
    pub min_completeness_requirement: Option<Text>,
    /// `retry_strategy`: words for the monitor.
    pub retry_strategy: Option<Text>,
    /// `max_retry_count`, when the author wrote it.
    pub max_retry_count: Option<u32>,
    /// Whether a monitor may have the rest of the topic changed.
    pub orchestration: bool,
}

impl Strategy {
    /// How often `retry` may begin an action again.
    pub fn retries(&self) -> u32 {
        self.max_retry_count.unwrap_or(USUAL_RETRIES)
    }
}

/// `for_each: { in, as }` of a topic.
#[derive(Clone)]
pub struct ForEach {
    pub list: Expr,
    /// What one element is called.
    pub element: String,
}
