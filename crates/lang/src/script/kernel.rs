//! Reads `session.kernel`: the kernel that runs the code of a session (docs/kernel.md).

use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::time::{ONE_DAY, time};
use crate::source::diagnostic::Diagnostic;
use crate::source::yaml::NodeKind;

const MAX_NAME_BYTES: usize = 100;

/// The upper limit of `start_timeout`.
const ONE_HOUR: Duration = Duration::from_secs(60 * 60);

/// The kernel settings of a session. Absent settings have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenKernel {
    pub name: Option<String>,
    /// `on_resume`: `fresh` or `rerun`.
    pub on_resume: Option<&'static str>,
    /// `exec`: `run` or `approve`.
    pub exec: Option<&'static str>,
    pub timeout: Option<Duration>,
    /// `start_timeout`: the time limit for starting the kernel.
    pub start_timeout: Option<Duration>,
    /// `idle_timeout`: how long an idle kernel keeps running.
    pub idle_timeout: Option<Duration>,
}

/// Reads `kernel`: a name, or a mapping.
pub fn kernel(fields: &Fields<'_>) -> Option<WrittenKernel> {
    let node = fields.take("kernel")?;
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        return Some(WrittenKernel { name: name(fields, "kernel"), ..WrittenKernel::default() });
    }
    let inner = fields.inner(node, "`kernel`")?;
    let kernel = WrittenKernel {
        name: name(&inner, "name"),
        on_resume: inner.choice("on_resume", &["fresh", "rerun"]),
        exec: inner.choice("exec", &["run", "approve"]),
        timeout: time(&inner, "timeout", ONE_DAY),
        start_timeout: time(&inner, "start_timeout", ONE_HOUR),
        idle_timeout: time(&inner, "idle_timeout", ONE_DAY),
    };
    inner.finish();
    Some(kernel)
}

/// The name of a kernel spec, never a path.
fn name(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    let written = fields.name(key)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = written.value.as_str();
    let is_name =
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(allowed) && !name.starts_with('.');
    if !is_name {
        let message = "this cannot be the name of a kernel";
        let help = "write the name of an installed kernel, as in `python3`; `bcc-script doctor` lists them";
        let diagnostic = Diagnostic::error("invalid-name", message, fields.file(), written.span).with_help(help);
        fields.findings().report(diagnostic);
        return None;
    }
    Some(written.value)
}
