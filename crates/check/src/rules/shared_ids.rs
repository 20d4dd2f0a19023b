//! `duplicate-id` for triggers, skills, a topic and a phase with one id, and an action and a skill with one id.

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

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let report = |message: Message, help: &'static str, span: Span, first: (&'static str, Span)| {
        let diagnostic = Diagnostic::error(SLUG, message, model.file, span).with_help(help);
        findings.report(diagnostic.with_related(first.0, model.file, first.1));
    };
    report_duplicates(model.collected.triggers.iter().map(|trigger| &trigger.id), |id, first| {
        let message = msg!("the `trigger_id` `{}` is used twice", id.value);
        report(message, "give each a unique id", id.span, ("first used here", first));
    });
    report_duplicates(model.skills.iter().map(|skill| &skill.id), |id, first| {
        let message = msg!("the `skill_id` `{}` is used twice", id.value);
        report(
            message,
            "give each skill its own id: `insert` and `use_skill` refer to it",
            id.span,
            ("first used here", first),
        );
    });
    // A phase and a topic may share an id unless a `goto` uses it, which would be ambiguous.
    let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let by_id: BTreeMap<&str, Span> = phases.iter().map(|phase| (phase.id.value.as_str(), phase.id.span)).collect();
    let gotos: BTreeMap<&str, Span> = model.gotos().into_iter().map(|(id, span, _)| (id, span)).collect();
    for topic in phases.iter().flat_map(|phase| &phase.topics) {
        let id = topic.id.value.as_str();
        if let (Some(phase), Some(goto)) = (by_id.get(id), gotos.get(id)) {
            let message = msg!("a phase and a topic share the id `{id}`, so a `goto` could mean either");
            let help = "give one of the two another id";
            let diagnostic = Diagnostic::error(SLUG, message, model.file, topic.id.span).with_help(help);
            let diagnostic = diagnostic.with_related("the phase", model.file, *phase);
            findings.report(diagnostic.with_related("the `goto`", model.file, *goto));
        }
    }
    if model.skills.is_empty() {
        return;
    }
    let actions = model.collected.actions.iter().map(|action| (action.id.value.as_str(), action.id.span));
    let actions: BTreeMap<&str, Span> = actions.collect();
    let inserted: BTreeMap<&str, Span> =
        model.inserts().into_iter().map(|(id, _)| (id.value.as_str(), id.span)).collect();
    for skill in model.skills {
        let id = skill.id.value.as_str();
        if let (Some(action), Some(insert)) = (actions.get(id), inserted.get(id)) {
            let message = msg!("a skill and an action share the id `{id}`, so an `insert` could mean either");
            let help = "give one of the two another id";
            let diagnostic = Diagnostic::error(SLUG, message, model.file, skill.id.span).with_help(help);
            let diagnostic = diagnostic.with_related("the action", model.file, *action);
            findings.report(diagnostic.with_related("the `insert`", model.file, *insert));
        }
    }
    for skill in model.skills.iter().filter(|_| model.script.is_none()) {
        let all = model.library.all(&skill.id.value);
        if !all.iter().any(|other| other.is_at(model.file, skill.id.span)) {
            continue;
        }
        if let Some(other) = all.iter().find(|other| !other.is_at(model.file, skill.id.span)) {
            let message = msg!("two files of this project contain a skill `{}`", skill.id.value);
            let help = "give each skill its own id: otherwise a script cannot specify which of the two it calls";
            let diagnostic = Diagnostic::error(SLUG, message, model.file, skill.id.span).with_help(help);
            findings.report(diagnostic.with_related("the other one", &other.file, other.span));
        }
    }
}

/// Calls `report` for each id that was used before, with the place of its first use.
fn report_duplicates<'i>(ids: impl Iterator<Item = &'i Spanned<String>>, report: impl Fn(&Spanned<String>, Span)) {
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
