//! Renders diagnostics as SARIF 2.1.0, the OASIS format that code hosts and editors read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::source::diagnostic::{Diagnostic, Fix, Related, Severity, order};
use crate::source::render::redaction::without_secrets;
use crate::source::span::Span;
use crate::source::text::SourceFile;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A rule and its documentation page. The caller provides them: this module does not know the rules.
#[derive(Clone, Copy, Debug)]
pub struct RuleText<'a> {
    pub slug: &'a str,
    /// The default severity.
    pub severity: Severity,
    /// The page, as markdown: a title, one sentence, sections with `## ` headings, the first of which gives the reason.
    pub page: &'a str,
}

/// The log of one run, with a trailing line break: all diagnostics, by file and position, and all `rules`. A diagnostic whose
/// rule is not one of them has no `ruleIndex`.
///
/// Columns count characters (`unicodeCodePoints`); ends are the position after the last character. A file name becomes a
/// relative reference unless it is an absolute path. Messages are written unchanged: `{` and `}` are not doubled, because
/// readers show messages without arguments unchanged.
pub fn sarif(diagnostics: &[Diagnostic], rules: &[RuleText<'_>]) -> String {
    let diagnostics = without_secrets(diagnostics);
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by(|a, b| order(a, b));
    let index: BTreeMap<&str, usize> = rules.iter().enumerate().map(|(index, rule)| (rule.slug, index)).collect();
    let results: Vec<Value> =
        sorted.iter().map(|diagnostic| result(diagnostic, index.get(diagnostic.rule).copied())).collect();
    let rules: Vec<Value> = rules.iter().map(descriptor).collect();
    let driver = json!({ "name": "bcc-script", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    let run = json!({ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": results });
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] });
    format!("{log}\n")
}

fn descriptor(rule: &RuleText<'_>) -> Value {
    let mut parts = rule.page.split("\n## ");
    let head = parts.next().unwrap_or("");
    let sentence = one_line(head.split_once('\n').map_or("", |(_, sentence)| sentence));
    let sentence = if sentence.is_empty() { rule.slug.to_owned() } else { sentence };
    let reason = one_line(parts.next().and_then(|reason| reason.split_once('\n')).map_or("", |(_, text)| text));
    let full = if reason.is_empty() { sentence.clone() } else { format!("{sentence} {reason}") };
    json!({
        "id": rule.slug,
        "shortDescription": { "text": sentence },
        "fullDescription": { "text": full },
        "help": { "text": rule.page, "markdown": rule.page },
        "defaultConfiguration": { "level": level(rule.severity) },
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn result(diagnostic: &Diagnostic, index: Option<usize>) -> Value {
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.to_string(),
    };
    let mut result = json!({
        "ruleId": diagnostic.rule,
        "level": level(diagnostic.severity),
        "message": { "text": message },
        "locations": [{ "physicalLocation": place(&diagnostic.file, diagnostic.span) }],
    });
    let Value::Object(fields) = &mut result else { return result };
    if let Some(index) = index {
        fields.insert("ruleIndex".into(), index.into());
    }
    if !diagnostic.related.is_empty() {
        let related = diagnostic.related.iter().enumerate().map(|(index, related)| location(index, related));
        fields.insert("relatedLocations".into(), related.collect());
    }
    // The format does not allow a fix that changes nothing.
    let fixes: Vec<Value> = diagnostic.fixes.iter().filter_map(|fix| change(fix, &diagnostic.file)).collect();
    if !fixes.is_empty() {
        fields.insert("fixes".into(), fixes.into());
    }
    result
}

fn location(index: usize, related: &Related) -> Value {
    json!({
        "id": index + 1,
        "message": { "text": related.message },
        "physicalLocation": place(&related.file, related.span),
    })
}

fn change(fix: &Fix, file: &SourceFile) -> Option<Value> {
    let replacements: Vec<Value> = fix
        .edits
        .iter()
        .map(|edit| json!({ "deletedRegion": region(file, edit.span), "insertedContent": { "text": edit.text } }))
        .collect();
    let change = json!({ "artifactLocation": { "uri": uri(file.name()) }, "replacements": replacements });
    (!fix.edits.is_empty()).then(|| json!({ "description": { "text": fix.title }, "artifactChanges": [change] }))
}

fn place(file: &SourceFile, span: Span) -> Value {
    json!({ "artifactLocation": { "uri": uri(file.name()) }, "region": region(file, span) })
}

fn region(file: &SourceFile, span: Span) -> Value {
    let span = file.clamp(span);
    let (start_line, start_column) = file.line_column(span.start);
    let (end_line, end_column) = file.line_column(span.end);
    json!({
        "startLine": start_line,
        "startColumn": start_column,
        "endLine": end_line,
        "endColumn": end_column,
        "byteOffset": span.start,
        "byteLength": span.len(),
    })
}

/// A path as a URI reference (RFC 3986): relative stays relative, absolute becomes `file:`.
fn uri(path: &str) -> String {
    let slashed = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let drive = matches!(slashed.as_bytes(), [letter, b':', b'/', ..] if cfg!(windows) && letter.is_ascii_alphabetic());
    let mut out = String::with_capacity(slashed.len() + 8);
    if drive {
        out.push_str("file:///");
    } else if slashed.starts_with('/') {
        out.push_str("file://");
    }
    for (index, byte) in slashed.bytes().enumerate() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b':' if drive && index == 1 => out.push(':'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::diagnostic::Edit;

    const RULES: [RuleText<'_>; 2] = [
        RuleText {
            slug: "bare",
            severity: Severity::Warning,
            page: "# bare\n\nA thing stands\nalone.\n\n## Why\n\nIt is cold\nthere.\n\n## Wrong\n\n```yaml\na: b\n```\n",
        },
        RuleText { slug: "unknown-key", severity: Severity::Error, page: "# unknown-key\n" },
    ];

    #[test]
    fn a_log_holds_rules_places_and_fixes() {
        let file = Arc::new(SourceFile::new("脚本/a b.yaml", "姓名: 张三\ncontnet: {{ x }}\n"));
        let other = Arc::new(SourceFile::new("/tmp/b#1.yaml", "\ncontent: x\n"));
        let key = Span::new(15, 22);
        let found = [
            Diagnostic::info("of-nobody", "the end", &file, Span::point(99)),
            Diagnostic::error("unknown-key", "`contnet` and {{ x }}", &file, key)
                .with_help("did you mean `content`?")
                .with_related("it is called so here", &other, Span::new(1, 8))
                .with_fix("write `content`", vec![Edit::replace(key, "content"), Edit::insert(15, "# x\n")])
                .with_fix("do nothing", Vec::new()),
            Diagnostic::warning("bare", "over two lines", &file, Span::new(8, 22)),
        ];
        let mut log: Value = serde_json::from_str(&sarif(&found, &RULES)).unwrap();
        let version = log.pointer_mut("/runs/0/tool/driver/version").unwrap();
        assert_eq!(version.take(), env!("CARGO_PKG_VERSION"));
        insta::assert_json_snapshot!(log);
    }

    #[test]
    fn a_log_without_findings_has_an_empty_list_of_results() {
        let log: Value = serde_json::from_str(&sarif(&[], &[])).unwrap();
        assert_eq!(log.pointer("/runs/0/results"), Some(&json!([])));
    }

    #[test]
    fn paths_become_uris() {
        let table = [
            ("scripts/a.yaml", "scripts/a.yaml"),
            ("../a.yaml", "../a.yaml"),
            ("脚本/咨询 1.yaml", "%E8%84%9A%E6%9C%AC/%E5%92%A8%E8%AF%A2%201.yaml"),
            ("a:b?c#d%20.yaml", "a%3Ab%3Fc%23d%2520.yaml"),
            ("/tmp/x y.yaml", "file:///tmp/x%20y.yaml"),
            ("<built in>", "%3Cbuilt%20in%3E"),
        ];
        for (path, expected) in table {
            assert_eq!(uri(path), expected);
        }
    }
}
