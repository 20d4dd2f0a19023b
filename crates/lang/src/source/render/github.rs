//! Renders diagnostics as workflow commands of GitHub Actions, which shows them next to the lines of a change.

use std::fmt::Write;

use crate::source::diagnostic::{Diagnostic, Severity, order};
use crate::source::render::redaction::without_secrets;
use crate::source::render::visible::{visible, visible_line};

/// Renders one command per diagnostic, each on one line, by file and position, with the help after the message. Empty if there
/// are no diagnostics.
///
/// Columns are given only for diagnostics within one line: GitHub does not support others. No text of a message or a name can
/// start a second command: line breaks and percent signs are escaped, in properties also colons and commas.
pub fn github(diagnostics: &[Diagnostic]) -> String {
    let diagnostics = without_secrets(diagnostics);
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by(|a, b| order(a, b));
    let mut out = String::new();
    for diagnostic in sorted {
        command(&mut out, diagnostic);
    }
    out
}

fn command(out: &mut String, diagnostic: &Diagnostic) {
    let name = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let file = &diagnostic.file;
    let span = file.clamp(diagnostic.span);
    let (line, column) = file.line_column(span.start);
    let (end_line, end_column) = file.line_column(span.end);
    let _ = write!(out, "::{name} file={}", property(&visible_line(file.name())));
    if line == end_line {
        let _ = write!(out, ",line={line},col={column},endLine={end_line},endColumn={end_column}");
    } else {
        let _ = write!(out, ",line={line},endLine={end_line}");
    }
    let _ = write!(out, ",title={}::{}", property(diagnostic.rule), data(&visible(&diagnostic.message.to_string())));
    if let Some(help) = &diagnostic.help {
        let _ = write!(out, "%0Ahelp: {}", data(&visible(&help.to_string())));
    }
    for related in &diagnostic.related {
        let (line, column) = related.file.line_column(related.span.start);
        let note =
            format!("{}:{line}:{column}: {}", visible_line(related.file.name()), visible(&related.message.to_string()));
        let _ = write!(out, "%0Anote: {}", data(&note));
    }
    out.push('\n');
}

fn data(text: &str) -> String {
    // Some log readers treat the two Unicode separators as line ends.
    let text = text.replace(['\u{2028}', '\u{2029}'], " ");
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::message::Message;
    use crate::source::span::Span;
    use crate::source::text::SourceFile;

    #[test]
    fn findings_become_commands_in_the_order_of_the_file() {
        let file = Arc::new(SourceFile::new("脚本/a,b:c.yaml", "姓名: 张三\ncontnet: x\n"));
        let found = [
            Diagnostic::info("later", "the end", &file, Span::point(99)),
            Diagnostic::error("unknown-key", "100% `contnet`", &file, Span::new(15, 22))
                .with_help("did you mean `content`?\nor `context`?")
                .with_related("as here", &file, Span::new(0, 6)),
            Diagnostic::warning("bare", "over two lines", &file, Span::new(8, 22)),
        ];
        let expected = "\
::warning file=脚本/a%2Cb%3Ac.yaml,line=1,endLine=2,title=bare::over two lines
::error file=脚本/a%2Cb%3Ac.yaml,line=2,col=1,endLine=2,endColumn=8,title=unknown-key::100%25 `contnet`%0Ahelp: did you mean `content`?%0Aor `context`?%0Anote: 脚本/a,b:c.yaml:1:1: as here
::notice file=脚本/a%2Cb%3Ac.yaml,line=3,col=1,endLine=3,endColumn=1,title=later::the end
";
        assert_eq!(github(&found), expected);
        assert_eq!(github(&[]), "");
    }

    #[test]
    fn no_text_starts_a_second_command() {
        let breaks = ["\n", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{2029}", "\u{b}", "\u{c}", "%0A", "%0D%0A"];
        for text in breaks.map(|text| format!("a{text}::error file=b::c\u{1b}[31m")) {
            let file = Arc::new(SourceFile::new(text.as_str(), "x"));
            let found = Diagnostic::error("x", Message::text(&text), &file, Span::default())
                .with_help(Message::text(&text))
                .with_related(Message::text(&text), &file, Span::default());
            let output = github(&[found]);
            let lines: Vec<&str> =
                output.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}']).collect();
            assert_eq!(lines.len(), 2, "{output:?}");
            // The runner reads everything up to the first `::` after the name as properties.
            let (properties, _) = output.strip_prefix("::error ").unwrap().split_once("::").unwrap();
            assert!(properties.ends_with("title=x"), "{output:?}");
            assert!(!output.contains('\u{1b}') && !output.contains(&text), "{output:?}");
        }
    }
}
