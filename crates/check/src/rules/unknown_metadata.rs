//! `unknown-metadata`: a trigger asks for a field of `metadata` that is written almost like one that replies have, so that
//! it would never fire (docs/triggers.md).

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

/// What the engine itself adds to the `metadata` of an outcome (docs/routes.md).
const ADDED: [&str; 7] =
    ["current_round", "error_message", "exit_reason", "max_rounds", "parse_error", "parse_retry_count", "raw_response"];

pub static RULE: Rule = Rule { slugs: &["unknown-metadata"], essential: false, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let triggers = facts.seen.triggers.iter().filter_map(|trigger| trigger.when.as_ref());
    let whens: BTreeSet<_> = triggers.map(|words| Arc::as_ptr(&words.node)).collect();
    if whens.is_empty() {
        return;
    }
    let known = fields(facts.reply_schemas);
    for expression in facts.seen.expressions.iter().filter(|fact| whens.contains(&Arc::as_ptr(&fact.node))) {
        let mut asked = Vec::new();
        asked.extend(fields_of(METADATA, expression.expression.root()));
        for (name, range) in asked.into_iter().filter(|(name, _)| !known.contains(name)) {
            // Replies may have fields that no schema names: only what looks like a slip is reported.
            let near = findings.may_advise().then(|| near_miss(name, known.iter().copied())).flatten();
            let (Some(near), Some(place)) = (near, place(expression.expression.source(), name, &range)) else {
                continue;
            };
            let span = expression.span(facts.file, &place);
            let message = msg!("no reply has `{}` in its `metadata`", shortened(name));
            let diagnostic = Diagnostic::warning("unknown-metadata", message, facts.file, span);
            let edits = vec![Edit { span, text: near.to_owned() }];
            findings
                .report(diagnostic.with_help(msg!("did you mean `{near}`?")).with_fix(msg!("write `{near}`"), edits));
        }
    }
}

/// The fields of `metadata` in all replies.
fn fields(schemas: &BTreeMap<String, Value>) -> BTreeSet<&str> {
    let of_replies =
        schemas.values().filter_map(|schema| schema.pointer("/properties/metadata/properties")?.as_object());
    of_replies.flat_map(|fields| fields.keys().map(String::as_str)).chain(ADDED).collect()
}

/// Where a name stands as the last word of what asks for it.
fn place(source: &str, name: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let end = range.start + source.get(range.clone())?.rfind(name)? + name.len();
    Some(end - name.len()..end)
}
