//! `timeout` and `retry` of an action: options next to `config`, for kinds with effects outside the session (docs/actions/command.md).

use crate::message::msg;
use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::time::{ONE_DAY, time};
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::YamlNode;

/// The maximum number of repetitions.
const MAX_TIMES: u32 = 100;

const DEFAULT_BACKOFF: Duration = Duration::from_secs(1);
const DEFAULT_MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The options of one action, each with the position of its value.
#[derive(Clone, Debug, Default)]
pub struct StepOptions {
    pub timeout: Option<Spanned<Duration>>,
    pub retry: Option<Spanned<RetryPolicy>>,
}

impl StepOptions {
    /// The names of the options.
    pub const NAMES: [&str; 2] = ["timeout", "retry"];

    /// The options that are written, with their positions.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let timeout = self.timeout.as_ref().map(|timeout| ("timeout", timeout.span));
        timeout.into_iter().chain(self.retry.as_ref().map(|retry| ("retry", retry.span)))
    }
}

/// When and how often an effect that failed is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of repetitions, in addition to the first attempt.
    pub times: u32,
    /// The pause before the first repetition. It doubles with each further one.
    pub backoff: Duration,
    pub max_backoff: Duration,
    pub on: Vec<RetryCause>,
}

/// What an attempt must end with to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    Failed,
    TimedOut,
    ExitCode(u8),
}

impl RetryPolicy {
    /// The pause after this number of failed attempts.
    pub fn pause(&self, failed_attempts: u32) -> Duration {
        let doublings = failed_attempts.saturating_sub(1);
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.backoff.saturating_mul(factor).min(self.max_backoff)
    }
}

/// Reads the options of an action. Invalid values are reported.
pub(crate) fn step_options(fields: &Fields<'_>) -> StepOptions {
    let span_of = |name| fields.take(name).map(|node| node.span);
    let timeout = time(fields, "timeout", ONE_DAY);
    let timeout = timeout.zip(span_of("timeout")).map(|(value, span)| Spanned { value, span });
    let retry = fields.take("retry").and_then(|node| Some(Spanned { value: policy(node, fields)?, span: node.span }));
    StepOptions { timeout, retry }
}

fn policy(node: &YamlNode, fields: &Fields<'_>) -> Option<RetryPolicy> {
    let inner = fields.inner(node, "`retry`")?;
    let times = inner.required("times").and_then(|_| inner.integer("times", 1..=MAX_TIMES));
    let backoff = time(&inner, "backoff", ONE_DAY).unwrap_or(DEFAULT_BACKOFF);
    let max_backoff = time(&inner, "max_backoff", ONE_DAY).unwrap_or(DEFAULT_MAX_BACKOFF.max(backoff));
    let on = match inner.has("on") {
        true => inner.required_list("on").unwrap_or_default().iter().filter_map(|item| cause(item, &inner)).collect(),
        false => vec![RetryCause::Failed, RetryCause::TimedOut],
    };
    inner.finish();
    Some(RetryPolicy { times: times?, backoff, max_backoff, on })
}

fn cause(item: &YamlNode, fields: &Fields<'_>) -> Option<RetryCause> {
    const REASONS: [&str; 2] = ["failed", "timed_out"];
    let value = item.to_json();
    if let Some(code) = value.as_u64().and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0) {
        return Some(RetryCause::ExitCode(code));
    }
    match value.as_str() {
        Some("failed") => Some(RetryCause::Failed),
        Some("timed_out") => Some(RetryCause::TimedOut),
        other => {
            let message =
                msg!("an item of `on` must be `failed`, `timed_out` or an exit code, but this is {}", item.describe());
            let help = match other.and_then(|text| near_miss(text, REASONS)) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!("write for example `on: [failed, timed_out, 75]`; exit codes are numbers from 1 to 255"),
            };
            fields.error("not-a-choice", message, item.span, help);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_maximum() {
        let policy = |backoff, max_backoff| RetryPolicy {
            times: 3,
            backoff: Duration::from_secs(backoff),
            max_backoff: Duration::from_secs(max_backoff),
            on: vec![],
        };
        let pauses = |policy: RetryPolicy, attempts: &[u32]| -> Vec<u64> {
            attempts.iter().map(|attempt| policy.pause(*attempt).as_secs()).collect()
        };
        assert_eq!(pauses(policy(2, 60), &[1, 2, 3, 6, 7, 40, u32::MAX]), [2, 4, 8, 60, 60, 60, 60]);
        assert_eq!(pauses(policy(30, 10), &[1]), [10]);
    }
}
