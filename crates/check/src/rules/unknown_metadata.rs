//! `unknown-metadata`: a trigger uses a field of `metadata` whose name is similar to an existing one, so it would never fire
//! (docs/triggers.md).

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::expr::fields::fields_of;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;

const METADATA: &str = "metadata";

/// The fields that the engine adds to the `metadata` of an outcome (docs/routes.md).
const ADDED: [&str; 7] =
    ["current_round", "error_message", "exit_reason", "max_rounds", "parse_error", "parse_retry_count", "raw_response"];

pub static RULE: Rule = Rule { slugs: &["unknown-metadata"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let triggers = model.collected.triggers.iter().filter_map(|trigger| trigger.when.as_ref());
    let whens: BTreeSet<_> = triggers.map(|field| Arc::as_ptr(&field.node)).collect();
    if whens.is_empty() {
        return;
    }
    let known = fields(model.reply_schemas);
    for expression in model.collected.expressions.iter().filter(|entry| whens.contains(&Arc::as_ptr(&entry.node))) {
        let mut accessed = Vec::new();
        accessed.extend(fields_of(METADATA, expression.expression.root()));
        for (name, range) in accessed.into_iter().filter(|(name, _)| !known.contains(name)) {
            // Replies may have fields that no schema names: only probable typos are reported.
            let near = findings.may_suggest().then(|| near_miss(name, known.iter().copied())).flatten();
            let (Some(near), Some(place)) = (near, place(expression.expression.source(), name, &range)) else {
                continue;
            };
            let span = expression.span(model.file, &place);
            let message = msg!("no reply has `{}` in its `metadata`", shortened(name));
            let diagnostic = Diagnostic::warning("unknown-metadata", message, model.file, span);
            let edits = vec![Edit { span, text: near.to_owned() }];
            findings
                .report(diagnostic.with_help(msg!("did you mean `{near}`?")).with_fix(msg!("write `{near}`"), edits));
        }
    }
}

/// The fields of `metadata` in all reply schemas.
fn fields(schemas: &BTreeMap<String, Value>) -> BTreeSet<&str> {
    let of_replies =
        schemas.values().filter_map(|schema| schema.pointer("/properties/metadata/properties")?.as_object());
    of_replies.flat_map(|fields| fields.keys().map(String::as_str)).chain(ADDED).collect()
}

/// The range of a name at the end of the expression that accesses it.
fn place(source: &str, name: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let end = range.start + source.get(range.clone())?.rfind(name)? + name.len();
    Some(end - name.len()..end)
}
