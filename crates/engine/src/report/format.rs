//! How a file is recognized as a report.

use bcc_lang::script::report::ReportFormat;

/// The first bytes of a report in Markdown.
pub(crate) const MARKDOWN_START: &str = "<!-- bcc-script report -->";

/// The line of an HTML page that says what wrote it.
pub(crate) const HTML_GENERATOR: &str = "<meta name=\"generator\" content=\"bcc-script report\">";

/// The first fields of a report in JSON, without spaces.
const JSON_START: &str = r#"{"version":1,"kind":"report","#;

/// Whether a file with this start is a report in this format.
pub fn is_report(format: ReportFormat, start: &str) -> bool {
    match format {
        ReportFormat::Markdown => start.starts_with(MARKDOWN_START),
        ReportFormat::Html => start.contains(HTML_GENERATOR),
        ReportFormat::Json => start.split_whitespace().collect::<String>().starts_with(JSON_START),
    }
}
