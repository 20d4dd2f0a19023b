//! Errors that a scripted model simulates instead of replying.

use std::sync::Arc;
use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::limits::spanned;
use crate::source::span::Spanned;
use crate::source::yaml::YamlNode;

/// The error of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedError {
    /// The server responds with this status.
    Http {
        status: u16,
        /// The time that the server asks to wait.
        retry_after: Option<Duration>,
        message: String,
    },
    Timeout(TimeoutKind),
    Unreachable,
}

/// The timeout that the model exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// No reply starts.
    FirstToken,
    /// The reply starts, then stalls.
    Idle,
    /// The reply never ends.
    Total,
}

/// The keys of a mapping that specifies an error or how a reply is sent, and is not itself a reply.
pub(crate) const KEYS: [&str; 11] = [
    "timeout",
    "http",
    "retry_after",
    "message",
    "cut_after",
    "unreachable",
    "after_ms",
    "reply",
    "$round",
    "$answered",
    "$after_ms",
];

pub(crate) fn scripted_error(fields: &Fields<'_>) -> Option<ScriptedError> {
    let status = spanned(fields, "http", 100..=599);
    let retry_after = fields.take("retry_after");
    let message = fields.text("message").map(|words| words.text).unwrap_or_default();
    let timeout = fields.take("timeout");
    let unreachable = if fields.has("unreachable") { fields.boolean("unreachable") } else { None };
    if let Some(node) = timeout {
        return slow(node, fields).map(ScriptedError::Timeout);
    }
    if unreachable == Some(true) {
        return Some(ScriptedError::Unreachable);
    }
    let Spanned { value: status, .. } = status?;
    let retry_after = retry_after.and_then(|node| seconds(node, fields));
    Some(ScriptedError::Http { status: u16::try_from(status).ok()?, retry_after, message })
}

fn slow(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<TimeoutKind> {
    let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
    match text {
        "first_token" | "true" => Some(TimeoutKind::FirstToken),
        "idle" => Some(TimeoutKind::Idle),
        "total" => Some(TimeoutKind::Total),
        _ => {
            let message = "`timeout` must be one of `first_token`, `idle`, `total`";
            let help =
                "`first_token`: no reply starts; `idle`: the reply starts, then stalls; `total`: the reply never ends";
            fields.error("not-a-choice", message, node.span, help);
            None
        }
    }
}

fn seconds(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Duration> {
    let number = node.to_json().as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if number.is_none() {
        fields.report_wrong_type(
            "retry_after",
            "a number of seconds",
            node,
            "write it in digits, as in `retry_after: 2`",
        );
    }
    number
}
