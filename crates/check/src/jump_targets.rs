//! The targets of the routes of a document: its `goto`s and `insert`s.

use std::collections::{BTreeMap, BTreeSet};

use crate::collected::{ActionPosition, CalleeBody, Collected, CollectedAction};
use crate::semantic_model::SemanticModel;
use crate::skill_topics::is_skill_topic;
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
        let cases = self.collected.gotos.iter().map(|(id, at)| (id.value.as_str(), id.span, *at));
        let at = ActionPosition { body: CalleeBody::Session, action: None };
        let triggers = self.collected.triggers.iter().filter_map(|trigger| trigger.goto());
        routes.chain(cases).chain(triggers.map(|id| (id.value, id.span, at))).collect()
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

/// The actions of a document by their ids. The ids of the topics of a skill are its own.
pub(crate) struct ActionIds<'a>(BTreeMap<(Option<usize>, &'a str), usize>);

impl<'a> ActionIds<'a> {
    pub(crate) fn of(collected: &'a Collected) -> Self {
        let actions = collected.actions.iter().enumerate().rev();
        Self(actions.map(|(number, action)| ((skill_of(action.body), action.id.value.as_str()), number)).collect())
    }

    /// The action with this id in the same skill as `from`, or in the script.
    pub(crate) fn get(&self, from: CalleeBody, id: &str) -> Option<usize> {
        self.0.get(&(skill_of(from), id)).copied()
    }

    /// All ids in the same skill as `from`, or in the script.
    pub(crate) fn all(&self, from: CalleeBody) -> impl Iterator<Item = (&'a str, usize)> {
        let skill = skill_of(from);
        self.0.iter().filter(move |((found, _), _)| *found == skill).map(|((_, id), number)| (*id, *number))
    }

    /// An action with this id anywhere.
    pub(crate) fn anywhere(&self, id: &str) -> Option<usize> {
        self.0.iter().find(|((_, found), _)| *found == id).map(|(_, number)| *number)
    }
}

fn skill_of(body: CalleeBody) -> Option<usize> {
    match body {
        CalleeBody::Skill(skill) => Some(skill),
        _ => None,
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
    // The table of a topic of a skill reaches the actions of the topic.
    if target.parent == Some(number) && collected.actions.get(number).is_some_and(is_skill_topic) {
        return true;
    }
    let around = std::iter::successors(Some(number), |number| collected.actions.get(*number)?.parent);
    around.filter_map(|number| collected.actions.get(number)).any(same_list)
}
