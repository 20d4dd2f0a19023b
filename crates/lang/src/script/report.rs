//! Reads `report` of a session: the report that is written when the session ends (docs/reports.md).

use std::path::Path;

use crate::message::msg;
use crate::script::fields::Fields;
use crate::script::project_path::{PathUse, path_problem};
use crate::source::diagnostic::Severity;
use crate::source::span::{Span, Spanned};

/// The names of the formats.
const FORMATS: [&str; 3] = ["md", "html", "json"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    Markdown,
    Html,
    Json,
}

impl ReportFormat {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "md" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// The format that the extension of a file selects.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "markdown" => Some(Self::Markdown),
            "htm" => Some(Self::Html),
            other => Self::parse(other),
        }
    }
}

/// The file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    pub format: ReportFormat,
    /// The path, relative to the project.
    pub out: Spanned<String>,
}

pub fn report(fields: &Fields<'_>) -> Option<ReportFile> {
    let node = fields.take("report")?;
    let inner = fields.inner(node, "`report`")?;
    let out = inner.required_text("out").map(|words| Spanned { value: words.text, span: words.node.span });
    let chosen = inner.choice("format", &FORMATS).and_then(ReportFormat::parse);
    let names_format = inner.has("format");
    inner.finish();
    let out = out?;
    if let Some(problem) = path_problem(&out.value, "out", PathUse::Written) {
        let is_refused = problem.severity == Severity::Error;
        problem.report(fields, out.span);
        if is_refused {
            return None;
        }
    }
    let format = chosen.or_else(|| ReportFormat::of_path(Path::new(&out.value)));
    if format.is_none() && !names_format {
        report_no_format(fields, out.span);
    }
    Some(ReportFile { format: format?, out })
}

fn report_no_format(fields: &Fields<'_>, span: Span) {
    let message = msg!("`report` does not specify a format, and the extension of its file is none of a report");
    fields.error("missing-key", message, span, "add `format: md`, `format: html` or `format: json`");
}
