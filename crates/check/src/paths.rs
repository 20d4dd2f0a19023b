//! Which place of a document can be reached from which, as far as variables care: a writer that may come before a use.
//!
//! Everything is taken to lead to all that stands below it, whatever conditions and routes say, and every route that leads
//! back to lead back from wherever it may be taken. So a place may be called reachable that is not; what is called out of
//! reach is.

use std::collections::{BTreeSet, HashMap};

use crate::collected::{ActionPosition, CalleeBody, Collected};
use crate::name_table::{begin, end};
use bcc_lang::script::routes::Go;
use bcc_lang::script::script::Script;

#[derive(Debug, Default)]
pub struct DocumentPaths {
    /// By the tick of the clock: the first tick that can be reached from there.
    reach: Vec<usize>,
}

impl DocumentPaths {
    pub fn of(seen: &Collected, script: Option<&Script>) -> Self {
        // By the tick from which it may be taken: the first tick to which a way back leads.
        let mut back: Vec<usize> = (0..=seen.clock).collect();
        for (from, to) in ways_back(seen, script) {
            if let Some(first) = back.get_mut(from) {
                *first = to.min(*first);
            }
        }
        // A way back that stands below can be taken from above.
        let mut first = usize::MAX;
        for place in back.iter_mut().rev() {
            first = first.min(*place);
            *place = first;
        }
        // From where it leads, others may lead further.
        let mut reach: Vec<usize> = Vec::with_capacity(back.len());
        for (place, first) in back.into_iter().enumerate() {
            let further = if first < place { reach.get(first).copied() } else { None };
            reach.push(further.unwrap_or(first));
        }
        Self { reach }
    }

    /// Whether something at the tick `to` may happen after something at the tick `from`.
    pub fn lead(&self, from: usize, to: usize) -> bool {
        self.first(from) <= to
    }

    /// The first tick at which something may happen after something at the tick `from`. So may everything behind it.
    pub fn first(&self, from: usize) -> usize {
        self.reach.get(from).copied().unwrap_or(from)
    }
}

fn ways_back(seen: &Collected, script: Option<&Script>) -> Vec<(usize, usize)> {
    let mut ways = Vec::new();
    let whole = ActionPosition { body: CalleeBody::Session, action: None };
    let part = |body: CalleeBody| {
        (end(seen, ActionPosition { body, action: None }), begin(seen, ActionPosition { body, action: None }))
    };
    let mut targets: HashMap<&str, usize> = HashMap::new();
    for (number, phase) in script.into_iter().flat_map(|script| &script.phases).enumerate() {
        targets.entry(&phase.id.value).or_insert(part(CalleeBody::Phase(number)).1);
        for (topic_number, topic) in phase.topics.iter().enumerate() {
            let topic_part = part(CalleeBody::Topic(number, topic_number));
            targets.entry(&topic.id.value).or_insert(topic_part.1);
            // The actions run once for each element, or in an order that is made while they run.
            if topic.for_each.is_some() || topic.strategy.as_ref().is_some_and(|strategy| strategy.orchestration) {
                ways.push(topic_part);
            }
        }
    }
    let by_id: HashMap<&str, usize> =
        seen.actions.iter().enumerate().rev().map(|(number, action)| (action.id.value.as_str(), number)).collect();
    let inserted = |id: &str| by_id.get(id).and_then(|number| seen.actions.get(*number)).map(|action| &action.order);
    let mut again: BTreeSet<CalleeBody> = BTreeSet::new();
    for table in &seen.routes {
        for route in &table.on_exit.routes {
            match route.then.as_ref().map(|then| &then.value) {
                Some(Go::Goto(id)) => ways.extend(targets.get(id.as_str()).map(|to| (end(seen, table.at), *to))),
                Some(Go::Retry | Go::Resume) if table.at.action.is_some() => {
                    ways.push((end(seen, table.at), begin(seen, table.at)));
                }
                Some(Go::Retry | Go::Resume) => {
                    again.insert(table.at.body);
                }
                _ => {}
            }
            if let Some(order) = route.insert.as_ref().and_then(|insert| inserted(&insert.value)) {
                ways.push((end(seen, table.at), order.start));
                ways.push((order.end.min(seen.clock), begin(seen, table.at)));
            }
        }
    }
    for trigger in &seen.triggers {
        if let Some(order) = trigger.insert.as_ref().and_then(|insert| inserted(&insert.value)) {
            ways.push((end(seen, whole), order.start));
            ways.push((order.end.min(seen.clock), begin(seen, whole)));
        }
    }
    for (id, at) in &seen.gotos {
        ways.extend(targets.get(id.value.as_str()).map(|to| (end(seen, *at), *to)));
    }
    for action in &seen.actions {
        // What one round extracts, the texts of the next one may show.
        let rounds = action.described.as_ref().is_some_and(|described| described.max_rounds > 1);
        let phase = action.body.phase().map(CalleeBody::Phase);
        let retried = [Some(action.body), phase, Some(CalleeBody::Session)].into_iter().flatten();
        if rounds || retried.into_iter().any(|body| again.contains(&body)) {
            ways.push((action.order.end.min(seen.clock), action.order.start));
        }
    }
    ways
}
