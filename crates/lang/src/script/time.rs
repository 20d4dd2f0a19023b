//! Durations of a script, as written.

use crate::message::msg;
use std::time::Duration;

use crate::script::fields::Fields;
use crate::source::diagnostic::Diagnostic;

/// The longest time that a cell may run, or a kernel may be idle: a day.
pub const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a duration such as `60s` or `2m 30s`: at least a millisecond, at most `longest`. Anything else is reported.
pub fn time(fields: &Fields<'_>, key: &'static str, longest: Duration) -> Option<Duration> {
    let node = fields.take(key)?;
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    let parsed = humantime::parse_duration(text).ok();
    if let Some(time) = parsed.filter(|time| (Duration::from_millis(1)..=longest).contains(time)) {
        return Some(time);
    }
    let longest = humantime::format_duration(longest);
    let diagnostic = match parsed {
        Some(_) => {
            let message = msg!("`{key}` must be a duration greater than zero and at most {longest}");
            Diagnostic::error("out-of-range", message, fields.file(), node.span)
        }
        None => {
            let message = msg!("`{key}` must be a duration, but this is {}", node.describe());
            let seconds = text.parse::<u32>().ok().map(|seconds| format!("{seconds}s"));
            let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), node.span);
            diagnostic.with_replacement(seconds.as_deref())
        }
    };
    let help = msg!("write a number with a unit, as in `30s` or `5m`; at most {longest}");
    fields.findings().report(diagnostic.with_help(help));
    None
}
