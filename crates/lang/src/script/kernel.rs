//! `session.kernel`, as written: the kernel that runs the code of a session (docs/kernel.md).

use std::time::Duration;

use crate::script::fields::Fields;
use crate::script::time::{A_DAY, time};
use crate::source::diagnostic::Diagnostic;
use crate::source::yaml::NodeKind;

const LONGEST_NAME: usize = 100;

/// The longest time that a start may take.
const AN_HOUR: Duration = Duration::from_secs(60 * 60);

/// What a session says of its kernel; whatever it does not say is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenKernel {
    pub name: Option<String>,
    /// `on_resume`: `fresh` or `rerun`.
    pub on_resume: Option<&'static str>,
    pub timeout: Option<Duration>,
    /// `start_timeout`: how long it may take to start.
    pub start_timeout: Option<Duration>,
    /// `idle_timeout`: how long it lives without anything to do.
    pub idle_timeout: Option<Duration>,
}

/// Reads `kernel`: a name, or a table.
pub fn kernel(fields: &Fields<'_>) -> Option<WrittenKernel> {
    let node = fields.take("kernel")?;
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        return Some(WrittenKernel { name: name(fields, "kernel"), ..WrittenKernel::default() });
    }
    let inner = fields.inner(node, "`kernel`")?;
    let kernel = WrittenKernel {
        name: name(&inner, "name"),
        on_resume: inner.choice("on_resume", &["fresh", "rerun"]),
        timeout: time(&inner, "timeout", A_DAY),
        start_timeout: time(&inner, "start_timeout", AN_HOUR),
        idle_timeout: time(&inner, "idle_timeout", A_DAY),
    };
    inner.finish();
    Some(kernel)
}

/// The name of a kernel spec. It is looked up, never a path.
fn name(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    let written = fields.name(key)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = written.value.as_str();
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed) && !name.starts_with('.');
    if !is_name {
        let message = "this cannot be the name of a kernel";
        let help = "write the name of an installed kernel, as in `python3`; `bcc-script doctor` lists them";
        let diagnostic = Diagnostic::error("invalid-name", message, fields.file(), written.span).with_help(help);
        fields.findings().report(diagnostic);
        return None;
    }
    Some(written.value)
}
