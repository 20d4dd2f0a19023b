//! What was heard before it was asked for, and what was said anew: questions that are skipped, and the routes of `on_change`
//! (docs/routes.md).

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, ProgramStep, Topic};
use crate::program::route_table::{ChangeTable, Route, RouteLevel};
use crate::run::draft::CommitDraft;
use crate::run::frames::FrameTarget;
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use crate::run::skipped_actions::SkipReason;
use crate::run::transitions::SessionFailure;
use crate::run::turns::NextStep;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::value::exact::ExactValues;

/// The reason in events of these routes.
pub const CHANGED: &str = "changed";

impl Session {
    /// Why an action is skipped if what it asks for was heard before.
    pub(crate) fn known_before(&self, step: &ProgramStep) -> Option<SkipReason> {
        let names = step.action.known_before();
        let is_known = |name: &String| self.scopes.get(name).is_some_and(|stored| !stored.value.is_null());
        if names.is_empty() || !names.iter().all(is_known) {
            return None;
        }
        let why = msg!("what it requires is known already: {}", Message::names(names));
        Some(SkipReason { why, skipped: Some("known") })
    }

    /// Takes the routes for the variables that a turn in this topic changed: what every route sets, and then the first way that one of
    /// them has. What a `set` changes counts as well.
    /// Errors: The routes go round in a circle.
    pub(crate) fn follow_changes(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        place: &EventLocation,
        next: NextStep,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        if self.changed.is_empty() {
            return Ok(next);
        }
        let tables = [
            (&topic.changes, RouteLevel::Topic, topic.id.as_str()),
            (&phase.changes, RouteLevel::Phase, phase.id.as_str()),
            (&program.changes, RouteLevel::Session, program.id.as_str()),
        ];
        let mut way: Option<(&Route, Message, RouteLevel, String)> = None;
        while !self.changed.is_empty() {
            let name = self.changed.remove(0);
            let Some((route, level, id)) = find(tables, &name) else { continue };
            self.count_route_hop(format!("{name} ({CHANGED}) → {}", shown(route)))?;
            if !route.set.is_empty() {
                let key = self.frames.leaf();
                self.apply_assignments(program, &key, &route.set, draft)?;
            }
            if way.is_none() && route.leads_away() {
                let why =
                    msg!("on_change of the {} `{id}`: `{name}` has another value now", Message::word(level.name()));
                way = Some((route, why, level, name));
            }
        }
        let Some((route, why, level, name)) = way else { return Ok(next) };
        let event =
            Event::RouteTaken { reason: CHANGED, route: shown(route), from: name, why, table: Some(level.name()) };
        draft.event(place, event);
        let key = self.frames.leaf();
        let is_action = self.frames.get(&key).is_some_and(|frame| frame.at == FrameTarget::Action);
        match &route.insert {
            Some(inserted) => {
                let then = route.then.clone().or(is_action.then_some(RouteTarget::Resume));
                let reason = ExitReason::ExitCriteriaMet;
                let insertion = Insertion::ByRoute { reason, completed: false, then, failure: None };
                self.insert(program, &key, inserted, insertion, ExactValues::new(), draft)?;
            }
            None => {
                let then = route.then.clone().unwrap_or(RouteTarget::Resume);
                if is_action {
                    self.continue_at(program, &key, &then, false, draft)?;
                } else {
                    self.go_past(program, &key, &then, draft)?;
                }
            }
        }
        self.settled(draft)
    }
}

/// The route for a changed variable, in the innermost table that has one.
fn find<'p>(
    tables: [(&'p ChangeTable, RouteLevel, &'p str); 3],
    name: &str,
) -> Option<(&'p Route, RouteLevel, &'p str)> {
    tables.into_iter().find_map(|(table, level, id)| Some((table.get(name)?, level, id)))
}

/// A route as events and errors name it.
fn shown(route: &Route) -> String {
    let then = route.then.as_ref().unwrap_or(&RouteTarget::Resume);
    match &route.insert {
        Some(id) => format!("insert: {id}, then: {then}"),
        None => then.to_string(),
    }
}
