//! Reachability between the places of a document, for variables: whether a write may happen before a use.
//!
//! Every place is assumed to reach all places below it, regardless of conditions and routes, and every backward route is
//! assumed to be taken from wherever it applies. So an unreachable place may be considered reachable, but not the reverse.

use std::collections::{BTreeSet, HashMap};

use crate::cleanup::Cleanup;
use crate::collected::{ActionPosition, CalleeBody, Collected};
use crate::jump_targets::{ActionIds, can_jump};
use crate::name_table::{end_tick, start_tick};
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::script::script::Script;

#[derive(Debug, Default)]
pub struct DocumentPaths {
    /// For each tick of the clock, the first tick that can be reached from there.
    reach: Vec<usize>,
}

impl DocumentPaths {
    pub fn of(collected: &Collected, script: Option<&Script>) -> Self {
        // For each tick, the first tick to which a backward edge leads from there.
        let mut back: Vec<usize> = (0..=collected.clock).collect();
        for (from, to) in backward_edges(collected, script) {
            if let Some(first) = back.get_mut(from) {
                *first = to.min(*first);
            }
        }
        // A backward edge further below can also be taken from above.
        let mut first = usize::MAX;
        for place in back.iter_mut().rev() {
            first = first.min(*place);
            *place = first;
        }
        // From its target, other edges may lead further back.
        let mut reach: Vec<usize> = Vec::with_capacity(back.len());
        for (place, first) in back.into_iter().enumerate() {
            let further = if first < place { reach.get(first).copied() } else { None };
            reach.push(further.unwrap_or(first));
        }
        Self { reach }
    }

    /// The first tick that may happen after the tick `from`. All later ticks may happen as well.
    pub(crate) fn first_reachable(&self, from: usize) -> usize {
        self.reach.get(from).copied().unwrap_or(from)
    }
}

fn backward_edges(collected: &Collected, script: Option<&Script>) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    let session = ActionPosition { body: CalleeBody::Session, action: None };
    let part = |body: CalleeBody| {
        (
            end_tick(collected, ActionPosition { body, action: None }),
            start_tick(collected, ActionPosition { body, action: None }),
        )
    };
    let mut targets: HashMap<&str, usize> = HashMap::new();
    for (number, phase) in script.into_iter().flat_map(|script| &script.phases).enumerate() {
        targets.entry(&phase.id.value).or_insert(part(CalleeBody::Phase(number)).1);
        for (topic_number, topic) in phase.topics.iter().enumerate() {
            let topic_part = part(CalleeBody::Topic(number, topic_number));
            targets.entry(&topic.id.value).or_insert(topic_part.1);
            // The actions run once for each element, or in an order that is determined at run time.
            if topic.for_each.is_some() || topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration) {
                edges.push(topic_part);
            }
        }
    }
    let by_id: HashMap<&str, usize> =
        collected.actions.iter().enumerate().rev().map(|(number, action)| (action.id.value.as_str(), number)).collect();
    let inserted =
        |id: &str| by_id.get(id).and_then(|number| collected.actions.get(*number)).map(|action| &action.order);
    let ids = ActionIds::of(collected);
    let jump = |id: &str, at: ActionPosition| {
        let action = || ids.get(at.body, id).filter(|number| can_jump(collected, at, *number));
        let action = || collected.actions.get(action()?).map(|action| action.order.start);
        let in_script = targets.get(id).filter(|_| !matches!(at.body, CalleeBody::Skill(_)));
        in_script.copied().or_else(action)
    };
    let mut repeated: BTreeSet<CalleeBody> = BTreeSet::new();
    for table in &collected.routes {
        for route in &table.on_exit.routes {
            match route.then.as_ref().map(|then| &then.value) {
                Some(RouteTarget::Goto(id)) => {
                    edges.extend(jump(id, table.at).map(|to| (end_tick(collected, table.at), to)))
                }
                Some(RouteTarget::Retry | RouteTarget::Resume) if table.at.action.is_some() => {
                    edges.push((end_tick(collected, table.at), start_tick(collected, table.at)));
                }
                Some(RouteTarget::Retry | RouteTarget::Resume) => {
                    repeated.insert(table.at.body);
                }
                _ => {}
            }
            if let Some(order) = route.insert.as_ref().and_then(|insert| inserted(&insert.value)) {
                edges.push((end_tick(collected, table.at), order.start));
                edges.push((order.end.min(collected.clock), start_tick(collected, table.at)));
            }
        }
    }
    for trigger in &collected.triggers {
        if let Some(order) = trigger.insert.as_ref().and_then(|insert| inserted(&insert.value)) {
            edges.push((end_tick(collected, session), order.start));
            edges.push((order.end.min(collected.clock), start_tick(collected, session)));
        }
    }
    // A trigger may jump from anywhere; what was set before the jump is known at its target.
    for to in collected.triggers.iter().filter_map(|trigger| targets.get(trigger.goto()?.value)) {
        edges.push((end_tick(collected, session), *to));
    }
    for (id, at) in &collected.gotos {
        edges.extend(jump(&id.value, *at).map(|to| (end_tick(collected, *at), to)));
    }
    for (id, at) in &collected.rewinds {
        // What was set before a push-back is known when the steps run again.
        let target = by_id.get(id.value.as_str()).filter(|number| can_jump(collected, *at, **number));
        let target = target.and_then(|number| collected.actions.get(*number));
        edges.extend(target.map(|target| (end_tick(collected, *at), target.order.start)));
    }
    for action in &collected.actions {
        // A compensation runs after everything else.
        if collected.cleanup_blocks.get(&action.block) == Some(&Cleanup::Compensate) {
            edges.push((end_tick(collected, session), action.order.start));
        }
        // The texts of a round may show what the previous round extracted.
        let rounds = action.described.as_ref().is_some_and(|described| described.max_rounds > 1);
        let phase = action.body.phase().map(CalleeBody::Phase);
        let retried = [Some(action.body), phase, Some(CalleeBody::Session)].into_iter().flatten();
        if rounds || retried.into_iter().any(|body| repeated.contains(&body)) {
            edges.push((action.order.end.min(collected.clock), action.order.start));
        }
    }
    edges
}
