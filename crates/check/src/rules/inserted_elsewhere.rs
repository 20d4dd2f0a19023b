//! `unknown-where-inserted`: an action inserted elsewhere uses a name that only its own topic or phase knows.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};

use crate::callables::can_insert;
use crate::collected::{AssignmentKind, CalleeBody, Definition, Use, UseKind};
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};

const SLUG: &str = "unknown-where-inserted";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    if !model.is_complete() {
        return;
    }
    let callables = model.callables();
    let triggers = model.collected.triggers.iter().filter_map(|trigger| trigger.insert.as_ref());
    let triggers: BTreeSet<Span> = triggers.map(|insert| insert.span).collect();
    // Results are cached: an action may be inserted in thousands of places.
    let mut needs: BTreeMap<usize, Vec<(&Use, &Definition)>> = BTreeMap::new();
    let mut trigger_topics: BTreeMap<CalleeBody, Vec<CalleeBody>> = BTreeMap::new();
    let mut holders: BTreeMap<&str, BTreeSet<CalleeBody>> = BTreeMap::new();
    // An insertion by the table of a phase or of the session may never happen elsewhere; one by a trigger does.
    for (id, from) in model.inserts().into_iter().filter(|(_, from)| !matches!(from, CalleeBody::Phase(_))) {
        if callables.skill(&id.value).is_some() {
            continue;
        }
        let Some(number) = callables.action(&id.value) else { continue };
        let Some(action) = model.collected.actions.get(number) else { continue };
        if action.body == from || !can_insert(from, action) {
            continue;
        }
        let places = match from {
            CalleeBody::Session if triggers.contains(&id.span) => {
                trigger_topics.entry(action.body).or_insert_with(|| topics_with_answers(model, action.body)).clone()
            }
            CalleeBody::Topic(..) => vec![from],
            _ => continue,
        };
        let needs = needs.entry(number).or_insert_with(|| needed(model, number));
        for (used, _) in needs.iter() {
            holders.entry(&used.name).or_insert_with(|| {
                let places = model.names().places(&used.name);
                places.into_iter().flat_map(|places| places.defined(&model.collected)).map(Definition::holder).collect()
            });
        }
        let missing = needs.iter().find_map(|(used, definition)| {
            let holders = holders.get(used.name.as_str())?;
            let known = |place: CalleeBody| {
                let around = [Some(CalleeBody::Session), place.phase().map(CalleeBody::Phase), Some(place)];
                around.into_iter().flatten().any(|holder| holders.contains(&holder))
            };
            places.iter().find(|place| !known(**place)).map(|place| (*used, *definition, *place))
        });
        if let Some((used, definition, place)) = missing {
            findings.report(report(model, id, used, definition, place));
        }
    }
}

/// The first topic of each phase, except `own`, that waits for an answer: a trigger may fire there.
fn topics_with_answers(model: &SemanticModel<'_>, own: CalleeBody) -> Vec<CalleeBody> {
    let waiting = model.collected.actions.iter().filter(|action| {
        action.body != own
            && matches!(action.body, CalleeBody::Topic(..))
            && action.described.as_ref().is_some_and(|described| described.needs_answer)
    });
    let mut bodies: Vec<CalleeBody> = waiting.map(|action| action.body).collect();
    bodies.dedup_by_key(|body| body.phase());
    bodies
}

/// The names that an action needs but does not set, and that only its topic or its phase knows.
fn needed<'f>(model: &'f SemanticModel<'_>, number: usize) -> Vec<(&'f Use, &'f Definition)> {
    let collected = &model.collected;
    let Some(action) = collected.actions.get(number) else { return vec![] };
    let first = collected.uses.partition_point(|used| used.order < action.order.start);
    let uses = collected.uses.iter().skip(first).take_while(|used| used.order < action.order.end);
    let mut found: BTreeMap<&str, (&Use, &Definition)> = BTreeMap::new();
    for used in uses.filter(|used| !used.optional && used.by != UseKind::Prompt) {
        if found.contains_key(used.name.as_str()) {
            continue;
        }
        let Some(places) = model.names().places(&used.name) else { continue };
        let visible = || places.defined(collected).filter(|definition| definition.visible_from(action.body));
        let wide = visible().any(|definition| definition.holder() == CalleeBody::Session);
        let own = visible().any(|definition| action.order.contains(&definition.order));
        if let Some(definition) = visible().next().filter(|_| !wide && !own) {
            found.insert(&used.name, (used, definition));
        }
    }
    found.into_values().collect()
}

fn report(
    model: &SemanticModel<'_>,
    id: &Spanned<String>,
    used: &Use,
    definition: &Definition,
    place: CalleeBody,
) -> Diagnostic {
    let name = shortened(&used.name);
    let message = msg!(
        "`{}` needs `{name}`, which is not available in {}: it belongs to {}",
        shortened(&id.value),
        model.part_name(place),
        model.part_name(definition.holder())
    );
    let help = match definition.how {
        AssignmentKind::Element => {
            msg!("an element is available only in its own topic: insert another action here, or a skill")
        }
        _ => msg!(
            "declare `{name}` in the session, so that it is available wherever the action is inserted; or insert another action here"
        ),
    };
    let diagnostic = Diagnostic::warning(SLUG, message, model.file, id.span).with_help(help);
    let diagnostic = diagnostic.with_related("it is needed here", model.file, used.place.span(model.file));
    diagnostic.with_related("it is available from here on", model.file, definition.span)
}
