//! Removes duplicate reports: a finding of a script about a template is dropped if the template's own report contains it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::{Diagnostic, Severity};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::template::Template;
use bcc_lang::template::templates::Templates;

/// The maximum number of places that a joined finding lists.
const MAX_PLACES: usize = 5;

/// The label of the related place.
const IN_TEMPLATE: &str = "in the template";

/// The findings of a script's check that are about a template.
const ABOUT_TEMPLATES: [&str; 3] = ["reply-schema", "unknown-template", "unknown-template-name"];

/// Removes from `script` (the findings of a script's check) those that only point to a problem which `templates` (the
/// findings of [`examine`](crate::templates::examine::examine) in the same project) reports in its own file. The related
/// place of such a finding is the place in the template.
pub fn without_template_duplicates(script: Vec<Diagnostic>, templates: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_reported = |finding: &Diagnostic| {
        finding.related.iter().any(|related| {
            templates.iter().filter(|template| template.is_error()).any(|template| {
                is_at(template, &related.file, related.span)
                    || is_about_schema(template, related.file.slice(related.span))
            })
        })
    };
    script.into_iter().filter(|finding| !(ABOUT_TEMPLATES.contains(&finding.rule) && is_reported(finding))).collect()
}

/// Turns warnings about unknown names in `templates` into errors if a script's check confirms them: the name is certainly
/// unknown in that script. The first such script is added as a related place.
pub fn confirmed(templates: Vec<Diagnostic>, script: &[Diagnostic]) -> Vec<Diagnostic> {
    const SLUG: &str = "unknown-template-name";
    let confirming_place = |template: &Diagnostic| {
        let points = |finding: &&Diagnostic| {
            let at = finding.related.iter().any(|related| is_at(template, &related.file, related.span));
            finding.rule == SLUG && finding.is_error() && at
        };
        script.iter().find(points).map(|finding| (Arc::clone(&finding.file), finding.span))
    };
    let confirm = |mut template: Diagnostic| {
        let suspected = template.rule == SLUG && !template.is_error();
        match suspected.then(|| confirming_place(&template)).flatten() {
            Some((file, span)) => {
                template.severity = Severity::Error;
                template.with_related("this uses the template, but has no variable with that name", &file, span)
            }
            None => template,
        }
    };
    templates.into_iter().map(confirm).collect()
}

/// Joins the findings of scripts about the same problem of a template: one finding for each problem, at the first script, with
/// the number of places. The findings must be sorted.
pub fn joined(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut joined: Vec<Diagnostic> = Vec::with_capacity(findings.len());
    // The finding of each problem, with all its places.
    let mut causes: BTreeMap<(&'static str, String), (usize, Vec<String>)> = BTreeMap::new();
    for finding in findings {
        // Files of templates and schemas have findings of their own.
        let own = finding.file.name().ends_with(".md") || finding.file.name().contains("schemas/replies/");
        if own || !ABOUT_TEMPLATES.contains(&finding.rule) {
            joined.push(finding);
            continue;
        }
        let place = format!("{}:{}", finding.file.name(), finding.file.line(finding.span.start));
        let (_, places) =
            causes.entry((finding.rule, finding.message.to_string())).or_insert_with(|| (joined.len(), Vec::new()));
        places.push(place);
        if places.len() == 1 {
            joined.push(finding);
        }
    }
    for (first, places) in causes.into_values().filter(|(_, places)| places.len() > 1) {
        let Some(finding) = joined.get_mut(first) else { continue };
        let count = places.len();
        let more = if count > MAX_PLACES { ", …" } else { "" };
        let listed = places.into_iter().take(MAX_PLACES).collect::<Vec<_>>().join(", ") + more;
        finding.message = msg!("{} ({count} places: {listed})", finding.message.clone());
    }
    joined
}

/// Whether a finding in a template is on the same line as this place.
fn is_at(template: &Diagnostic, file: &SourceFile, span: Span) -> bool {
    let same_file = template.file.name().ends_with(file.name()) && template.file.text().len() == file.text().len();
    same_file && template.file.line(template.span.start) == file.line(span.start)
}

/// Whether a finding is in the file of the schema that a template specifies.
fn is_about_schema(found: &Diagnostic, requested: &str) -> bool {
    let name = requested.trim_matches(['"', '\'']);
    let name = name.strip_suffix(".json").unwrap_or(name);
    let file = found.file.name().rsplit(['/', '\\']).next().unwrap_or_default();
    found.rule == "reply-schema" && file.strip_suffix(".json").is_some_and(|file| file == name)
}

/// Adds the place of `error` in the template's file as a related place, if it has one.
pub(crate) fn at_mistake(diagnostic: Diagnostic, templates: &Templates, error: &TemplateError) -> Diagnostic {
    let (Some(name), Some(mistake)) = (error.file.as_deref(), error.mistake.as_deref()) else { return diagnostic };
    match templates.files().iter().find(|loaded| loaded.source().name() == name) {
        Some(loaded) => diagnostic.with_related(IN_TEMPLATE, loaded.source(), loaded.span(&mistake.range)),
        None => diagnostic,
    }
}

/// Adds a related place where `template`, or else a template that it may include, needs `name`.
pub(crate) fn at_name(
    diagnostic: Diagnostic,
    templates: &Templates,
    template: &Template<'_>,
    name: &str,
) -> Diagnostic {
    if let Some(used) = template.names().iter().find(|used| used.name == name && !used.optional) {
        return diagnostic.with_related(IN_TEMPLATE, template.source(), Span::new(used.range.start, used.range.end));
    }
    for loaded in templates.files() {
        if let Some(used) = loaded.names().iter().find(|used| used.name == name && !used.optional) {
            return diagnostic.with_related(IN_TEMPLATE, loaded.source(), loaded.span(&used.range));
        }
    }
    diagnostic
}

/// Adds the place of `output_schema` in `template` as a related place.
pub(crate) fn at_schema(diagnostic: Diagnostic, template: Option<&Template<'_>>) -> Diagnostic {
    match template.and_then(|template| Some((template.source(), template.written("output_schema")?))) {
        Some((file, span)) => diagnostic.with_related(IN_TEMPLATE, file, span),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_of_a_template_is_one_finding_of_all_scripts() {
        let script = |name: &str| Arc::new(SourceFile::new(name, "session: 1\n"));
        let of =
            |rule, message: &'static str, name: &str| Diagnostic::error(rule, message, &script(name), Span::new(0, 1));
        let mut findings: Vec<Diagnostic> =
            (1..=7).map(|number| of("unknown-template", "broken", &format!("s{number}.yaml"))).collect();
        findings.push(of("unknown-template", "missing", "s1.yaml"));
        findings.push(of("unknown-name", "broken", "s2.yaml"));
        findings.push(of("unknown-name", "broken", "s3.yaml"));
        let joined = joined(findings);
        let messages: Vec<String> = joined.iter().map(|found| found.message.to_string()).collect();
        let all = "broken (7 places: s1.yaml:1, s2.yaml:1, s3.yaml:1, s4.yaml:1, s5.yaml:1, …)";
        assert_eq!(messages, [all, "missing", "broken", "broken"]);
    }

    #[test]
    fn only_findings_that_a_template_reports_are_removed() {
        let script = Arc::new(SourceFile::new("scripts/a.yaml", "session: 1\n"));
        let template = Arc::new(SourceFile::new("_system/config/default/t_v1.md", "a\n{{ x }}\n"));
        let shown = Arc::new(SourceFile::new("project/_system/config/default/t_v1.md", "a\n{{ x }}\n"));
        let schema = Arc::new(SourceFile::new("schemas/replies/x.json", "{}"));
        let at = Span::new(5, 6);
        let of_script = |rule| Diagnostic::error(rule, "", &script, Span::new(0, 1));
        let pointing = |rule| of_script(rule).with_related(IN_TEMPLATE, &template, at);
        let reported = [Diagnostic::error("unknown-template-name", "", &shown, at)];
        let elsewhere = [Diagnostic::error("template-syntax", "", &shown, Span::new(0, 1))];
        let warned = [Diagnostic::warning("unknown-template-name", "", &shown, at)];
        let in_schema = [Diagnostic::error("reply-schema", "", &schema, Span::default())];
        let table: [(Diagnostic, &[Diagnostic], bool); 7] = [
            (pointing("unknown-template-name"), &reported, false),
            (pointing("unknown-template"), &reported, false),
            (pointing("unknown-name"), &reported, true),
            (of_script("unknown-template"), &reported, true),
            (pointing("unknown-template"), &elsewhere, true),
            // An error of this script stays if the template has only a warning.
            (pointing("unknown-template-name"), &warned, true),
            (pointing("reply-schema"), &in_schema, false),
        ];
        for (number, (finding, templates, is_kept)) in table.into_iter().enumerate() {
            assert_eq!(without_template_duplicates(vec![finding], templates).len() == 1, is_kept, "{number}");
        }
    }
}
