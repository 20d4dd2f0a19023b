//! Options of an action next to `config`: `timeout`, `retry` and `on_failure` for kinds with effects outside the session, and
//! `depends_on` for every kind (docs/failures.md).

use crate::message::msg;
use std::sync::Arc;
use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::route_parser::RouteTarget;
use crate::script::time::{ONE_DAY, time};
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

/// The maximum number of repetitions.
const MAX_TIMES: u32 = 100;

const DEFAULT_BACKOFF: Duration = Duration::from_secs(1);
const DEFAULT_MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The options of one action, each with the position of its value.
#[derive(Clone, Debug, Default)]
pub struct StepOptions {
    pub timeout: Option<Spanned<Duration>>,
    pub retry: Option<Spanned<RetryPolicy>>,
    /// Where the session continues when the action fails.
    pub on_failure: Option<Spanned<RouteTarget>>,
    /// The ids of what must be over before it starts, in a list whose parts have no other order.
    pub depends_on: Vec<Spanned<String>>,
}

impl StepOptions {
    /// The names of the options.
    pub const NAMES: [&str; 4] = ["timeout", "retry", "on_failure", "depends_on"];

    /// The options that are written and that only some kinds have, with their positions.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let timeout = self.timeout.as_ref().map(|timeout| ("timeout", timeout.span));
        let retry = self.retry.as_ref().map(|retry| ("retry", retry.span));
        timeout.into_iter().chain(retry).chain(self.on_failure.as_ref().map(|target| ("on_failure", target.span)))
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
    let on_failure = fields.take("on_failure").and_then(|node| on_failure(node, fields));
    let ids = if fields.has_field("depends_on") { fields.required_list("depends_on").unwrap_or_default() } else { &[] };
    let depends_on = ids.iter().filter_map(|item| dependency(item, fields)).collect();
    StepOptions { timeout, retry, on_failure, depends_on }
}

fn on_failure(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Spanned<RouteTarget>> {
    const WORDS: [&str; 2] = ["stop", "continue"];
    if matches!(node.kind, NodeKind::Mapping(_)) {
        let inner = fields.inner(node, "`on_failure`")?;
        let id = inner.required_text("goto");
        inner.finish();
        return id.map(|id| Spanned { value: RouteTarget::Goto(id.text), span: id.node.span });
    }
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    match text {
        "stop" => Some(Spanned { value: RouteTarget::Fail, span: node.span }),
        "continue" => Some(Spanned { value: RouteTarget::Next, span: node.span }),
        _ => {
            let message =
                msg!("`on_failure` must be `stop`, `continue` or `{{ goto: … }}`, but this is {}", node.describe());
            let help = match near_miss(text, WORDS) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!("other routes belong into `on_exit`, as in `failed: retry`"),
            };
            fields.error("not-a-choice", message, node.span, help);
            None
        }
    }
}

/// An item of `depends_on`.
fn dependency(item: &YamlNode, fields: &Fields<'_>) -> Option<Spanned<String>> {
    match item.as_scalar().map(|scalar| scalar.text.trim()).filter(|id| !id.is_empty()) {
        Some(id) => Some(Spanned { value: id.to_owned(), span: item.span }),
        None => {
            let message = msg!("an item of `depends_on` must be an id, but this is {}", item.describe());
            fields.error("wrong-type", message, item.span, "write for example `depends_on: [build, test]`");
            None
        }
    }
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
