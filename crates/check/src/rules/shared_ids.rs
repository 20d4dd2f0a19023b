//! `duplicate-id` beyond one list: triggers, skills, a topic and a phase of one id, an action and a skill of one id.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};

const SLUG: &str = "duplicate-id";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let report = |message: Message, help: &'static str, span: Span, first: (&'static str, Span)| {
        let diagnostic = Diagnostic::error(SLUG, message, facts.file, span).with_help(help);
        findings.report(diagnostic.with_related(first.0, facts.file, first.1));
    };
    twice(facts.seen.triggers.iter().map(|trigger| &trigger.id), |id, first| {
        let message = msg!("the `trigger_id` `{}` is used twice", id.value);
        report(message, "give each a unique id", id.span, ("first used here", first));
    });
    twice(facts.skills.iter().map(|skill| &skill.id), |id, first| {
        let message = msg!("the `skill_id` `{}` is used twice", id.value);
        report(
            message,
            "give each skill its own id: `insert` and `use_skill` refer to it",
            id.span,
            ("first used here", first),
        );
    });
    // These two share no list, and only who names them cannot say which is meant.
    let phases = facts.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let by_id: BTreeMap<&str, Span> = phases.iter().map(|phase| (phase.id.value.as_str(), phase.id.span)).collect();
    let goals: BTreeMap<&str, Span> = facts.gotos().into_iter().map(|(id, span, _)| (id, span)).collect();
    for topic in phases.iter().flat_map(|phase| &phase.topics) {
        let id = topic.id.value.as_str();
        if let (Some(phase), Some(goto)) = (by_id.get(id), goals.get(id)) {
            let message = msg!("a phase and a topic share the id `{id}`, so a `goto` could mean either");
            let help = "give one of the two another id";
            let diagnostic = Diagnostic::error(SLUG, message, facts.file, topic.id.span).with_help(help);
            let diagnostic = diagnostic.with_related("the phase", facts.file, *phase);
            findings.report(diagnostic.with_related("the `goto`", facts.file, *goto));
        }
    }
    if facts.skills.is_empty() {
        return;
    }
    let actions = facts.seen.actions.iter().map(|action| (action.id.value.as_str(), action.id.span));
    let actions: BTreeMap<&str, Span> = actions.collect();
    let inserted: BTreeMap<&str, Span> =
        facts.inserts().into_iter().map(|(id, _)| (id.value.as_str(), id.span)).collect();
    for skill in facts.skills {
        let id = skill.id.value.as_str();
        if let (Some(action), Some(insert)) = (actions.get(id), inserted.get(id)) {
            let message = msg!("a skill and an action share the id `{id}`, so an `insert` could mean either");
            let help = "give one of the two another id";
            let diagnostic = Diagnostic::error(SLUG, message, facts.file, skill.id.span).with_help(help);
            let diagnostic = diagnostic.with_related("the action", facts.file, *action);
            findings.report(diagnostic.with_related("the `insert`", facts.file, *insert));
        }
    }
    for skill in facts.skills.iter().filter(|_| facts.script.is_none()) {
        let all = facts.library.all(&skill.id.value);
        if !all.iter().any(|other| other.is_at(facts.file, skill.id.span)) {
            continue;
        }
        if let Some(other) = all.iter().find(|other| !other.is_at(facts.file, skill.id.span)) {
            let message = msg!("two files of this project contain a skill `{}`", skill.id.value);
            let help = "give each skill its own id: otherwise a script cannot specify which of the two it calls";
            let diagnostic = Diagnostic::error(SLUG, message, facts.file, skill.id.span).with_help(help);
            findings.report(diagnostic.with_related("the other one", &other.file, other.span));
        }
    }
}

/// Calls `report` for each id that was used before, with the place of the first.
fn twice<'i>(ids: impl Iterator<Item = &'i Spanned<String>>, report: impl Fn(&Spanned<String>, Span)) {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    for id in ids.filter(|id| !id.value.is_empty()) {
        match seen.get(id.value.as_str()) {
            Some(first) => report(id, *first),
            None => {
                seen.insert(&id.value, id.span);
            }
        }
    }
}
