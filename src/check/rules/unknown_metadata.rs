//! `unknown-metadata`: a trigger asks for a field of `metadata` that is written almost like one that replies have, so that
//! it would never fire (LANGUAGE.md section 10).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use crate::check::facts::Facts;
use crate::check::rules::rule::Rule;
use crate::prompt::expr::tree::{Argument, Kind, Node};
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::{Diagnostic, Edit};
use crate::source::near::near_miss;

/// The rule.
pub struct UnknownMetadata;

const METADATA: &str = "metadata";

/// What the engine itself adds to the `metadata` of an outcome (LANGUAGE.md section 6).
const ADDED: [&str; 7] =
    ["current_round", "error_message", "exit_reason", "max_rounds", "parse_error", "parse_retry_count", "raw_response"];

impl Rule for UnknownMetadata {
    fn slugs(&self) -> &'static [&'static str] {
        &["unknown-metadata"]
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        let triggers = facts.seen.triggers.iter().filter_map(|trigger| trigger.when.as_ref());
        let whens: BTreeSet<_> = triggers.map(|words| Arc::as_ptr(&words.node)).collect();
        if whens.is_empty() {
            return;
        }
        let known = fields(facts.reply_schemas);
        for expression in facts.seen.expressions.iter().filter(|fact| whens.contains(&Arc::as_ptr(&fact.node))) {
            let mut asked = Vec::new();
            asks(expression.expression.root(), &mut asked);
            for (name, range) in asked.into_iter().filter(|(name, _)| !known.contains(name)) {
                // Replies may have fields that no schema names: only what looks like a slip is reported.
                let near = findings.may_advise().then(|| near_miss(name, known.iter().copied())).flatten();
                let (Some(near), Some(place)) = (near, place(expression.expression.source(), name, &range)) else {
                    continue;
                };
                let span = expression.span(facts.file, &place);
                let message = format!("no reply has `{}` in its `metadata`", shortened(name));
                let diagnostic = Diagnostic::warning("unknown-metadata", message, facts.file, span);
                let edits = vec![Edit { span, text: near.to_owned() }];
                findings.report(
                    diagnostic.with_help(format!("did you mean `{near}`?")).with_fix(format!("write `{near}`"), edits),
                );
            }
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

/// The fields of `metadata` that an expression asks for, each with the place of the whole `metadata.name`.
fn asks<'n>(node: &'n Node, found: &mut Vec<(&'n str, Range<usize>)>) {
    let is_metadata = |of: &Node| matches!(&of.kind, Kind::Name(name) if name == METADATA);
    let all = |arguments: &'n [Argument], found: &mut Vec<(&'n str, Range<usize>)>| {
        for argument in arguments {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            asks(node, found);
        }
    };
    match &node.kind {
        Kind::Attribute(of, name) if is_metadata(of) => found.push((name, node.range.clone())),
        Kind::Item(of, key) if is_metadata(of) => {
            if let Kind::Constant(key) = &key.kind {
                found.extend(key.as_str().map(|name| (name, node.range.clone())));
            }
        }
        Kind::Name(_) | Kind::Constant(_) => {}
        Kind::Not(of) | Kind::Negate(of) | Kind::Attribute(of, _) => asks(of, found),
        Kind::And(one, two) | Kind::Or(one, two) | Kind::Operation(_, one, two) | Kind::Item(one, two) => {
            asks(one, found);
            asks(two, found);
        }
        Kind::Chain(first, rest) => {
            asks(first, found);
            rest.iter().for_each(|(_, node)| asks(node, found));
        }
        Kind::Choice { test, yes, no } => {
            [Some(test), Some(yes), no.as_ref()].into_iter().flatten().for_each(|node| asks(node, found));
        }
        Kind::Filter(_, of, arguments) | Kind::Test(_, of, arguments) => {
            asks(of, found);
            all(arguments, found);
        }
        Kind::Slice { of, start, stop, .. } => {
            [Some(of), start.as_ref(), stop.as_ref()].into_iter().flatten().for_each(|node| asks(node, found));
        }
        Kind::Call(_, arguments) => all(arguments, found),
        Kind::List(items) => items.iter().for_each(|node| asks(node, found)),
        Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
            asks(key, found);
            asks(value, found);
        }),
    }
}
