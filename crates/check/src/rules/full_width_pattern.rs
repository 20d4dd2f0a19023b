//! `full-width-pattern`: a pattern with full-width punctuation where an operator is meant, so that it never matches.

use std::collections::HashSet;
use std::sync::Arc;

use crate::repairs::fix;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::pattern_marks::{FullWidthPattern, full_width_patterns};

pub static RULE: Rule = Rule { slugs: &["full-width-pattern"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    // An alias repeats a text of one place.
    let mut seen = HashSet::new();
    let expressions =
        model.collected.expressions.iter().map(|found| (&found.node, found.start, found.expression.source(), false));
    let texts = model
        .collected
        .texts
        .iter()
        .filter_map(|found| Some((&found.node, 0, found.node.as_scalar()?.text.as_str(), true)));
    for (node, start, source, is_text) in expressions.chain(texts) {
        for found in full_width_patterns(source, is_text) {
            let mark = found.mark.start + start..found.mark.end + start;
            let span = locate_bytes(model.file, node, mark);
            if seen.insert(span.start) {
                findings.report(of_scalar(&found, model.file, node, start, span));
            }
        }
    }
}

fn of_scalar(
    found: &FullWidthPattern,
    file: &Arc<SourceFile>,
    node: &YamlNode,
    start: usize,
    span: Span,
) -> Diagnostic {
    let fix = found.repair.as_ref().and_then(|repair| fix(file, node, start, repair));
    found.diagnostic(file, span).with_fixes(fix)
}

/// The findings in a template, whose text without front matter starts at byte `body` of its file.
pub(crate) fn of_template(source: &Arc<SourceFile>, body: usize) -> Vec<Diagnostic> {
    let text = source.text().get(body..).unwrap_or_default();
    let found = full_width_patterns(text, true).into_iter().map(|found| {
        let at = |range: &std::ops::Range<usize>| Span::new(range.start + body, range.end + body);
        let fix = found.repair.as_ref().map(|repair| Fix {
            title: repair.title.clone(),
            edits: repair.edits.iter().map(|(range, ascii)| Edit::replace(at(range), ascii.clone())).collect(),
            sure: repair.sure,
        });
        found.diagnostic(source, at(&found.mark)).with_fixes(fix)
    });
    found.collect()
}
