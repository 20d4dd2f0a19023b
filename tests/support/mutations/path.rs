//! Runs an input through all steps, from parsing to reports, and checks the properties of the result.

use bcc_lang::message::language::Language;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use bcc_check::check::{check, examine};
use bcc_check::context::CheckContext;
use bcc_check::diagnostics::{DIAGNOSTICS, Page};
use bcc_check::library::SkillLibrary;
use bcc_lang::expr::parse::Expr;
use bcc_lang::schema::embedded;
use bcc_lang::script::read::scheme;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, Fix};
use bcc_lang::source::render::github::github;
use bcc_lang::source::render::human::{Options, human, report as human_report, summary};
use bcc_lang::source::render::json::json;
use bcc_lang::source::render::sarif::{RuleText, sarif};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::front_matter::split;
use bcc_lang::template::layers::TemplateFile;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::templates::Templates;
use bcc_lang::template::text::AuthorTexts;
use bcc_lang::value::scopes::{DeclarationMap, Scope, ScopeLayer, Scopes, Stored};
use bcc_llm::reply::live::LiveContent;
use bcc_llm::reply::strategies;
use bcc_runtime::actions::KINDS;
use serde_json::Value;

use crate::seeds::Form;

/// The marker of roles in templates; no input contains it.
const MARKER: &str = "0123456789abcdef0123456789abcdef";

/// Returns the findings as text: two runs must give the same text. An `Err` describes a violated property. `reports`: whether to format
/// the findings in all report formats and apply fixes.
pub(crate) fn take(form: Form, bytes: &[u8], reports: bool) -> Result<String, String> {
    match form {
        Form::Script => script(bytes, reports),
        Form::Template => template(&String::from_utf8_lossy(bytes)),
        Form::Text => text(&String::from_utf8_lossy(bytes)),
        Form::Expression => expression(&String::from_utf8_lossy(bytes)),
        Form::Reply => reply(&String::from_utf8_lossy(bytes)),
    }
}

fn script(bytes: &[u8], reports: bool) -> Result<String, String> {
    let found = checked(bytes);
    check_findings(&found)?;
    let describe = |finding: &Diagnostic| {
        format!("{} {:?} {} {:?} {:?}\n", finding.rule, finding.span, finding.message, finding.help, finding.fixes)
    };
    let all = found.iter().map(describe).collect();
    if !reports {
        return Ok(all);
    }
    let _ = report(&found);
    // Editors apply the first fix.
    for diagnostic in found.iter().filter(|diagnostic| !diagnostic.fixes.is_empty()).take(4) {
        for fix in &diagnostic.fixes {
            let fixed = apply(fix, diagnostic.file.text())?;
            let after = checked(fixed.as_bytes());
            check_findings(&after).map_err(|problem| format!("after the fix `{}`: {problem}", fix.title))?;
        }
    }
    Ok(all)
}

fn checked(bytes: &[u8]) -> Vec<Diagnostic> {
    let file = match SourceFile::from_bytes("mutant.yaml", bytes.to_vec()) {
        Ok(file) => Arc::new(file),
        Err(diagnostic) => return vec![*diagnostic],
    };
    let parsed = parse(&file);
    if let Some(root) = parsed.root.as_deref() {
        let _ = scheme(root);
    }
    let library = SkillLibrary::default();
    let against = CheckContext {
        kinds: KINDS,
        custom: &Default::default(),
        templates: templates(),
        reply_schemas: &REPLIES,
        library: &library,
        models: None,
    };
    let (program, found) = check(&file, parsed.clone(), &against);
    assert_eq!(program.is_none(), found.iter().any(Diagnostic::is_error), "a program exactly where there is no error");
    let mut all = examine(&file, parsed, &against).diagnostics;
    all.extend(found);
    all
}

static REPLIES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let schema = |kind: &str| Some((kind.to_owned(), serde_json::from_str(embedded::reply(kind)?).unwrap()));
    KINDS.iter().filter_map(|kind| schema(kind.name())).collect()
});

/// Short templates: compiling the real ones takes longer than checking a script.
fn templates() -> Arc<Templates> {
    static TEMPLATES: OnceLock<Arc<Templates>> = OnceLock::new();
    let text = "---\nfallback: 请再说一次\n---\n{{ task }} {{ time }} {% for x in history %}{{ x }}{% endfor %}\n";
    let file = |kind| TemplateFile { place: "default".into(), name: format!("{kind}_v1.md"), text: text.into() };
    let files = ["ai_ask", "ai_say", "ai_think"].map(file);
    Arc::clone(TEMPLATES.get_or_init(|| Arc::new(Templates::new(&files, MARKER).unwrap())))
}

/// The findings in all report formats.
fn report(found: &[Diagnostic]) -> String {
    // Colored output only takes longer.
    let first_few = found.get(..found.len().min(5)).unwrap_or_default();
    let _ = human(first_few, true);
    let rule = |page: &Page| RuleText { slug: page.slug, severity: page.severity, page: page.text(Language::English) };
    // The pages are the same for every input.
    let rules: Vec<RuleText<'_>> = DIAGNOSTICS.iter().take(2).map(rule).collect();
    let all = Options { all: true, ..Options::default() };
    [
        human_report(found, &Options::default()),
        human_report(first_few, &all),
        json(1, found),
        sarif(found, &rules),
        github(found),
        summary(1, found).to_string(),
    ]
    .concat()
}

/// Checks the properties of every finding: its place is inside of the file, it has a message, and its fixes can be applied.
fn check_findings(found: &[Diagnostic]) -> Result<(), String> {
    let is_inside = |file: &SourceFile, span: Span| span.start <= span.end && file.text().get(span.range()).is_some();
    for diagnostic in found {
        let failure = |problem: &str| Err(format!("[{}] {}: {problem}", diagnostic.rule, diagnostic.message));
        if diagnostic.message.is_empty() || diagnostic.rule.is_empty() {
            return failure("says nothing");
        }
        if !is_inside(&diagnostic.file, diagnostic.span) {
            return failure(&format!("stands at {:?}, outside of the file or inside a character", diagnostic.span));
        }
        for related in &diagnostic.related {
            if !is_inside(&related.file, related.span) {
                return failure(&format!("is related to {:?}, outside of the file", related.span));
            }
        }
        for fix in &diagnostic.fixes {
            if fix.edits.is_empty() {
                return failure("has a fix without edits");
            }
            apply(fix, diagnostic.file.text()).or_else(|problem| failure(&problem).map(|()| String::new()))?;
        }
    }
    Ok(())
}

/// The text with the fix applied.
fn apply(fix: &Fix, text: &str) -> Result<String, String> {
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|edit| edit.span);
    let mut fixed = String::new();
    let mut copied = 0;
    for edit in &edits {
        let unchanged = text.get(copied..edit.span.start).filter(|_| text.get(edit.span.range()).is_some());
        let Some(unchanged) = unchanged else {
            return Err(format!("the edits of the fix `{}` overlap or leave the file: {edits:?}", fix.title));
        };
        fixed += unchanged;
        fixed += &edit.text;
        copied = edit.span.end;
    }
    Ok(fixed + text.get(copied..).unwrap_or_default())
}

fn template(text: &str) -> Result<String, String> {
    let _ = split(text);
    let file = |name: &str, text: &str| TemplateFile { place: "default".into(), name: name.into(), text: text.into() };
    let other = "{% block a %}{{ super_x }}{% endblock %}{% block b %}{% endblock %}";
    let Ok(templates) = Templates::new(&[file("ai_ask_v1.md", text), file("other_v1.md", other)], MARKER) else {
        return Ok("refused".to_owned());
    };
    let mut output = format!("{:?}", templates.problems());
    // A lone carriage return ends a line, too.
    let lines = SourceFile::new("", text).line(text.len());
    for problem in templates.problems() {
        if problem.line.is_some_and(|line| line == 0 || line > lines) {
            return Err(format!("{problem} stands outside of the file"));
        }
    }
    if let Ok(template) = templates.get("ai_ask", 1) {
        for used in template.names() {
            if text.get(used.range.clone()).is_none() || template.line(used) > lines {
                return Err(format!("`{}` is said to stand at {:?}", used.name, used.range));
            }
        }
        let mentioned: Vec<_> = template.mentioned().collect();
        output += &format!("{mentioned:?} {:?}", template.render(&names()).map_err(|error| error.to_string()));
    }
    Ok(output)
}

fn text(source: &str) -> Result<String, String> {
    let mut texts = AuthorTexts::new();
    match texts.add(source) {
        Ok(text) => {
            for used in text.names() {
                if source.get(used.range.clone()).is_none() {
                    return Err(format!("`{}` is said to stand at {:?}", used.name, used.range));
                }
            }
            Ok(format!("{:?}", texts.render(&text, &names())))
        }
        Err(error) => check_range(source, error.range.as_ref(), &error.message.to_string()),
    }
}

fn expression(source: &str) -> Result<String, String> {
    match Expr::parse(source) {
        Ok(expression) => {
            for used in expression.names() {
                check_range(source, Some(&used.range), &used.name)?;
            }
            let (value, truth) = (expression.eval(&names()), expression.truth(&names()));
            for error in value.as_ref().err().into_iter().chain(truth.as_ref().err()) {
                check_range(source, error.range.as_ref(), &error.message.to_string())?;
            }
            Ok(format!("{value:?} {truth:?}"))
        }
        Err(error) => check_range(source, error.range.as_ref(), &error.message.to_string()),
    }
}

fn check_range(source: &str, range: Option<&std::ops::Range<usize>>, message: &str) -> Result<String, String> {
    match range {
        Some(range) if source.get(range.clone()).is_none() => Err(format!("{message}: said to stand at {range:?}")),
        _ => Ok(message.to_owned()),
    }
}

fn reply(raw: &str) -> Result<String, String> {
    let (mut at_once, mut pieces) = (LiveContent::new(), LiveContent::new());
    at_once.push(raw);
    for character in raw.chars() {
        pieces.push(character.encode_utf8(&mut [0; 4]));
    }
    if at_once.shown() != pieces.shown() {
        return Err("what is shown of a reply depends on how it was cut".to_owned());
    }
    Ok(format!("{:?}", strategies::parse(raw, &[], false)))
}

/// A value of every type.
fn names() -> TemplateNames {
    let values = serde_json::json!({
        "称呼": "小林", "name": "张三", "text": "a b c", "x": 1, "a": 2.5, "b": true, "c": null, "list": ["a", 1, null, [2]],
        "items": [{ "name": "x", "a": 1 }, { "name": "y" }], "map": { "a": { "b": [1, 2] } }, "分数": 7, "age": 18,
        "huge": u64::MAX, "least": i64::MIN, "empty": "", "none_left": [], "y": 1e308, "z": "e\u{301}😀",
    });
    let mut layer = ScopeLayer::new(Scope::Session, "", Arc::new(DeclarationMap::new()));
    for (name, value) in values.as_object().unwrap() {
        layer.put(name, Stored { value: value.clone().into(), source: "test".into(), round: None, at: String::new() });
    }
    let mut scopes = Scopes::default();
    scopes.push(layer);
    let mut names = TemplateNames::new(scopes);
    names.set_text("task", "问一个问题");
    names.set_text("time", "10:00");
    names.set("history", serde_json::json!(["一", "二"]));
    names
}
