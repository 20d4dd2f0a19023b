//! What a scripted model does instead of answering, on demand.

use std::sync::Arc;
use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::limits::spanned;
use crate::source::span::Spanned;
use crate::source::yaml::YamlNode;

/// What goes wrong with one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptedError {
    /// The server answers with this status.
    Http {
        status: u16,
        /// What it asks to wait, in seconds.
        retry_after: Option<Duration>,
        message: String,
    },
    Timeout(Slow),
    Unreachable,
}

/// Which limit of time a model keeps waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// Nothing begins.
    FirstToken,
    /// It begins, and falls silent.
    Idle,
    /// It never ends.
    Total,
}

/// What stands in a mapping that is a fault or says how a reply comes, and not a reply.
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

pub(crate) fn fault(fields: &Fields<'_>) -> Option<ScriptedError> {
    let status = spanned(fields, "http", 100..=599);
    let retry_after = fields.take("retry_after");
    let message = fields.words("message").map(|words| words.text).unwrap_or_default();
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

fn slow(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Slow> {
    let text = node.as_scalar().map(|scalar| scalar.text.as_str()).unwrap_or_default();
    match text {
        "first_token" | "true" => Some(Slow::FirstToken),
        "idle" => Some(Slow::Idle),
        "total" => Some(Slow::Total),
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
        fields.wrong("retry_after", "a number of seconds", node, "write it in digits, as in `retry_after: 2`");
    }
    number
}
