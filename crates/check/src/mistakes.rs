//! The expressions that `validate` reports as errors although the script can run. An action that fails in one of them fails the session
//! unless a route for `error` applies (docs/routes.md): the author could have known it.

use std::sync::Arc;

use bcc_lang::expr::parse::Expr;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;

use crate::allow::allow;
use crate::rules::rule::Rule;
use crate::rules::{expression_types, filter_arguments, for_each_not_a_list};
use crate::semantic_model::SemanticModel;

/// The rules about expressions that certainly cannot be evaluated.
const RULES: [&Rule; 3] = [&expression_types::RULE, &for_each_not_a_list::RULE, &filter_arguments::RULE];

/// These expressions, without those whose finding a comment of the author silences. Levels of a project do not count: a
/// session does the same wherever its script runs.
pub(crate) fn mistaken_expressions(model: &SemanticModel<'_>) -> Vec<Expr> {
    let findings = Findings::new();
    for rule in RULES {
        (rule.check)(model, &findings);
    }
    let mut found = findings.into_vec();
    found.retain(Diagnostic::is_error);
    if found.is_empty() {
        return Vec::new();
    }
    let mut remaining = allow(model.file, found);
    remaining.retain(|finding| finding.is_error() && Arc::ptr_eq(&finding.file, model.file));
    let expressions = model.collected.expressions.iter().filter(|expression| {
        let span = expression.span(model.file, &(0..expression.expression.source().len()));
        remaining.iter().any(|finding| span.start <= finding.span.start && finding.span.end <= span.end)
    });
    expressions.map(|expression| expression.expression.clone()).collect()
}
