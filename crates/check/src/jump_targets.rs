//! Where the routes of a document lead: its `goto`s and what it inserts.

use crate::collected::{ActionPosition, CalleeBody};
use crate::semantic_model::SemanticModel;
use bcc_lang::script::routes::Go;
use bcc_lang::source::span::{Span, Spanned};

impl SemanticModel<'_> {
    /// Every `goto`: the id, its place, and where in the document it stands.
    pub fn gotos(&self) -> Vec<(&str, Span, ActionPosition)> {
        let routes =
            self.seen.routes.iter().flat_map(|table| table.on_exit.routes.iter().map(move |route| (route, table.at)));
        let routes = routes.filter_map(|(route, at)| match route.then.as_ref() {
            Some(then) => match &then.value {
                Go::Goto(id) => Some((id.as_str(), then.span, at)),
                _ => None,
            },
            None => None,
        });
        routes.chain(self.seen.gotos.iter().map(|(id, at)| (id.value.as_str(), id.span, *at))).collect()
    }

    /// Every `insert`, with the part of the document in which it stands.
    pub fn inserts(&self) -> Vec<(&Spanned<String>, CalleeBody)> {
        let routes =
            self.seen.routes.iter().flat_map(|table| table.on_exit.routes.iter().map(move |route| (route, table.at)));
        let routes = routes.filter_map(|(route, at)| Some((route.insert.as_ref()?, at.body)));
        let triggers =
            self.seen.triggers.iter().filter_map(|trigger| Some((trigger.insert.as_ref()?, CalleeBody::Session)));
        routes.chain(triggers).collect()
    }
}
