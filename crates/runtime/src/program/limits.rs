//! The limits of a session and its topics at run time (docs/budgets.md).

use serde::{Deserialize, Serialize};

use bcc_lang::expr::parse::Expr;
use bcc_lang::script::limits::WrittenBudget;
use bcc_lang::source::span::Spanned;
use bcc_lang::template::text::Text;

/// How often `retry` restarts an action if its topic's strategy does not set it.
pub(crate) const DEFAULT_RETRIES: u32 = 2;

/// The budget of a session; each limit is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// The maximum number of tokens, of prompts and replies together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The maximum number of minutes during which a process runs the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<u64>,
}

impl Budget {
    /// The budget of a script; limits that it does not set are absent.
    pub fn of(written: Option<&WrittenBudget>) -> Self {
        let limit = |field: fn(&WrittenBudget) -> &Option<Spanned<u32>>| {
            written.and_then(|written| field(written).as_ref()).map(|limit| u64::from(limit.value))
        };
        Self {
            turns: limit(|budget| &budget.turns),
            model_calls: limit(|budget| &budget.model_calls),
            tokens: limit(|budget| &budget.tokens),
            minutes: limit(|budget| &budget.minutes),
        }
    }
}

/// The priority of a topic if time runs short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The topic is skipped.
    Low,
    /// Each of its actions has one round.
    #[default]
    Medium,
    /// It runs completely.
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
    /// `text`, or the whole field if it is written as text.
    pub text: Option<Text>,
    /// `min_completeness_requirement`: text for the monitor; no code evaluates it.
    pub min_completeness_requirement: Option<Text>,
    /// `retry_strategy`: text for the monitor.
    pub retry_strategy: Option<Text>,
    /// `max_retry_count`, if set.
    pub max_retry_count: Option<u32>,
    /// Whether a monitor may have the remaining topic replanned.
    pub orchestration: bool,
}

impl Strategy {
    /// How often `retry` may restart an action.
    pub fn retries(&self) -> u32 {
        self.max_retry_count.unwrap_or(DEFAULT_RETRIES)
    }
}

/// `for_each: { in, as }` of a topic.
#[derive(Clone)]
pub struct ForEach {
    pub list: Expr,
    /// The name of the variable for one element.
    pub element: String,
}
