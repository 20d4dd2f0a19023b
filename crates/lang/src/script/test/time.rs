//! Times of a test: durations, and the start of its clock.

use crate::message::msg;
use std::time::Duration;

use jiff::Timestamp;

use crate::script::fields::Fields;
use crate::source::diagnostic::Diagnostic;
use crate::source::yaml::YamlNode;

/// The longest time that a test may let pass at once: ten years.
const MAX_DURATION: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A time as `5m`, `2h 30m` or `500ms`.
pub(crate) fn duration(name: &str, node: &YamlNode, fields: &Fields<'_>) -> Option<Duration> {
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    let parsed = humantime::parse_duration(text).ok().filter(|duration| *duration <= MAX_DURATION);
    if parsed.is_none() {
        let message = msg!("`{name}` must be a duration, but this is {}", node.describe());
        let help = "write a number with a unit, as in `30s`, `5m` or `2h 30m`; at most ten years";
        let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span).with_help(help);
        let seconds = text.parse::<u32>().ok().map(|seconds| format!("{seconds}s"));
        fields.findings().report(diagnostic.with_replacement(seconds.as_deref()));
    }
    parsed
}

/// `clock`: a timestamp in RFC 3339 format.
pub(crate) fn moment(fields: &Fields<'_>, name: &'static str) -> Option<Timestamp> {
    let written = fields.name(name)?;
    match written.value.parse() {
        Ok(moment) => Some(moment),
        Err(_) => {
            let message = msg!("`{name}` must be a timestamp, but this is not one");
            let help = "write it like this: `2026-11-21T20:00:00Z`";
            fields.error("wrong-type", message, written.span, help);
            None
        }
    }
}
