//! One fault, one report: what a script's check says about a template is left out where the template's own report says it.

use std::sync::Arc;

use bcc_lang::source::diagnostic::{Diagnostic, Severity};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::template::Template;
use bcc_lang::template::templates::Templates;

/// What the related place is called.
const HERE: &str = "in the template";

/// The findings of a script's check that are about a template.
const ABOUT_TEMPLATES: [&str; 3] = ["reply-schema", "unknown-template", "unknown-template-name"];

/// Leaves out of `script` (the findings of a script's check) each that only points at a fault which `templates` (what
/// [`examine`](crate::templates::examine::examine) found in the same project) tells where it stands: the place in the
/// template is the finding's related one.
pub fn without_what_templates_tell(script: Vec<Diagnostic>, templates: &[Diagnostic]) -> Vec<Diagnostic> {
    let told = |finding: &Diagnostic| {
        finding.related.iter().any(|related| {
            templates.iter().filter(|template| template.is_error()).any(|template| {
                is_at(template, &related.file, related.span)
                    || is_about_schema(template, related.file.slice(related.span))
            })
        })
    };
    script.into_iter().filter(|finding| !(ABOUT_TEMPLATES.contains(&finding.rule) && told(finding))).collect()
}

/// The findings of templates, with those made errors that were suspected only, and that a script's check points at: the name
/// is unknown there for sure. The first such script is named.
pub fn confirmed(templates: Vec<Diagnostic>, script: &[Diagnostic]) -> Vec<Diagnostic> {
    const SLUG: &str = "unknown-template-name";
    let proof = |template: &Diagnostic| {
        let points = |finding: &&Diagnostic| {
            let at = finding.related.iter().any(|related| is_at(template, &related.file, related.span));
            finding.rule == SLUG && finding.is_error() && at
        };
        script.iter().find(points).map(|finding| (Arc::clone(&finding.file), finding.span))
    };
    let confirm = |mut template: Diagnostic| {
        let suspected = template.rule == SLUG && !template.is_error();
        match suspected.then(|| proof(&template)).flatten() {
            Some((file, span)) => {
                template.severity = Severity::Error;
                template.with_related("this uses the template, but has no variable with that name", &file, span)
            }
            None => template,
        }
    };
    templates.into_iter().map(confirm).collect()
}

/// Whether a finding in a template is about the same place.
fn is_at(template: &Diagnostic, file: &SourceFile, span: Span) -> bool {
    let same_file = template.file.name().ends_with(file.name()) && template.file.text().len() == file.text().len();
    same_file && template.file.line(template.span.start) == file.line(span.start)
}

/// Whether a finding stands in the file of the schema that a template asks for.
fn is_about_schema(found: &Diagnostic, asked: &str) -> bool {
    let name = asked.trim_matches(['"', '\'']);
    let name = name.strip_suffix(".json").unwrap_or(name);
    let file = found.file.name().rsplit(['/', '\\']).next().unwrap_or_default();
    found.rule == "reply-schema" && file.strip_suffix(".json").is_some_and(|file| file == name)
}

/// The same with the place of `error` in the template's file, where it has one.
pub fn at_mistake(diagnostic: Diagnostic, templates: &Templates, error: &TemplateError) -> Diagnostic {
    let (Some(name), Some(mistake)) = (error.file.as_deref(), error.mistake.as_deref()) else { return diagnostic };
    match templates.files().iter().find(|loaded| loaded.source().name() == name) {
        Some(loaded) => diagnostic.with_related(HERE, loaded.source(), loaded.span(&mistake.range)),
        None => diagnostic,
    }
}

/// The same with a place where `template`, or else one that it may pull in, needs `name`.
pub fn at_name(diagnostic: Diagnostic, templates: &Templates, template: &Template<'_>, name: &str) -> Diagnostic {
    if let Some(used) = template.names().iter().find(|used| used.name == name && !used.optional) {
        return diagnostic.with_related(HERE, template.source(), Span::new(used.range.start, used.range.end));
    }
    for loaded in templates.files() {
        if let Some(used) = loaded.names().iter().find(|used| used.name == name && !used.optional) {
            return diagnostic.with_related(HERE, loaded.source(), loaded.span(&used.range));
        }
    }
    diagnostic
}

/// The same with the place where `template` asks for its `output_schema`.
pub fn at_schema(diagnostic: Diagnostic, template: Option<&Template<'_>>) -> Diagnostic {
    match template.and_then(|template| Some((template.source(), template.written("output_schema")?))) {
        Some((file, span)) => diagnostic.with_related(HERE, file, span),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_silent_about_what_its_template_tells_and_about_nothing_else() {
        let script = Arc::new(SourceFile::new("scripts/a.yaml", "session: 1\n"));
        let template = Arc::new(SourceFile::new("_system/config/default/t_v1.md", "a\n{{ x }}\n"));
        let shown = Arc::new(SourceFile::new("project/_system/config/default/t_v1.md", "a\n{{ x }}\n"));
        let schema = Arc::new(SourceFile::new("schemas/replies/x.json", "{}"));
        let at = Span::new(5, 6);
        let of_script = |rule| Diagnostic::error(rule, "", &script, Span::new(0, 1));
        let pointing = |rule| of_script(rule).with_related(HERE, &template, at);
        let told = [Diagnostic::error("unknown-template-name", "", &shown, at)];
        let elsewhere = [Diagnostic::error("template-syntax", "", &shown, Span::new(0, 1))];
        let warned = [Diagnostic::warning("unknown-template-name", "", &shown, at)];
        let in_schema = [Diagnostic::error("reply-schema", "", &schema, Span::default())];
        let table: [(Diagnostic, &[Diagnostic], bool); 7] = [
            (pointing("unknown-template-name"), &told, false),
            (pointing("unknown-template"), &told, false),
            (pointing("unknown-name"), &told, true),
            (of_script("unknown-template"), &told, true),
            (pointing("unknown-template"), &elsewhere, true),
            // An error of this script stays, though the template alone is only suspected.
            (pointing("unknown-template-name"), &warned, true),
            (pointing("reply-schema"), &in_schema, false),
        ];
        for (number, (finding, templates, stays)) in table.into_iter().enumerate() {
            assert_eq!(without_what_templates_tell(vec![finding], templates).len() == 1, stays, "{number}");
        }
    }
}
