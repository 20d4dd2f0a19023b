//! The targets of the routes of a document: its `goto`s and `insert`s.

use std::collections::BTreeSet;

use crate::collected::{ActionPosition, CalleeBody, Collected, CollectedAction};
use crate::semantic_model::SemanticModel;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::source::span::{Span, Spanned};

impl SemanticModel<'_> {
    /// All `goto`s: the id, its span, and its position in the document.
    pub fn gotos(&self) -> Vec<(&str, Span, ActionPosition)> {
        let routes = self
            .collected
            .routes
            .iter()
            .flat_map(|table| table.on_exit.routes.iter().map(move |route| (route, table.at)));
        let routes = routes.filter_map(|(route, at)| match route.then.as_ref() {
            Some(then) => match &then.value {
                RouteTarget::Goto(id) => Some((id.as_str(), then.span, at)),
                _ => None,
            },
            None => None,
        });
        // `on_failure` is one target for several reasons.
        let mut seen = BTreeSet::new();
        let routes = routes.filter(|(_, span, _)| seen.insert(*span)).collect::<Vec<_>>().into_iter();
        routes.chain(self.collected.gotos.iter().map(|(id, at)| (id.value.as_str(), id.span, *at))).collect()
    }

    /// All `insert`s, each with the part of the document that contains it.
    pub fn inserts(&self) -> Vec<(&Spanned<String>, CalleeBody)> {
        let routes = self
            .collected
            .routes
            .iter()
            .flat_map(|table| table.on_exit.routes.iter().map(move |route| (route, table.at)));
        let routes = routes.filter_map(|(route, at)| Some((route.insert.as_ref()?, at.body)));
        let triggers =
            self.collected.triggers.iter().filter_map(|trigger| Some((trigger.insert.as_ref()?, CalleeBody::Session)));
        routes.chain(triggers).collect()
    }
}

/// Whether a `goto` at the position `at` can jump to the action with the number `target`: the action is in a list that contains the
/// position, in a topic or a skill. The tables of topics reach the topic's own list.
pub(crate) fn can_jump(collected: &Collected, at: ActionPosition, target: usize) -> bool {
    let Some(target) = collected.actions.get(target) else { return false };
    if at.body != target.body {
        return false;
    }
    let same_list = |here: &CollectedAction| here.parent == target.parent && here.block == target.block;
    let Some(number) = at.action else {
        // The actions of `finally` are in a list of their own.
        return target.parent.is_none() && target.block == 0 && matches!(at.body, CalleeBody::Topic(..));
    };
    let around = std::iter::successors(Some(number), |number| collected.actions.get(*number)?.parent);
    around.filter_map(|number| collected.actions.get(number)).any(same_list)
}
