//! What was heard before it was asked for, and what was said anew: questions that are skipped, and the routes of `on_change`
//! (docs/routes.md).

use crate::program::assigned::Assignment;
use crate::program::assignments::assign;
use crate::program::event::Event;
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, ProgramStep, Topic};
use crate::program::route_table::{Route, RouteLevel};
use crate::run::change_way::ChangeWay;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, lineage};
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

    /// Sets what the routes for the variables say that a turn of the action `key` changed, before the session goes on, and remembers the
    /// first way that one of them has. What these routes change counts as well. `written` is what the turn itself set: that is newer than
    /// anything that a route could set.
    /// Errors: The routes go round in a circle.
    pub(crate) fn set_for_changes(
        &mut self,
        program: &Program,
        key: &str,
        written: &[String],
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        self.change_way = None;
        while !self.changed.is_empty() {
            let name = self.changed.remove(0);
            let Some(position) = self.position(program, key) else { continue };
            let (phase, topic) = (position.phase, position.topic);
            let Some((route, level, id)) = find(program, (phase, topic), &name) else { continue };
            self.count_route_hop(format!("{name} ({CHANGED}) → {}", shown(route)))?;
            let set: Vec<&Assignment> = route.set.iter().filter(|set| !written.contains(&set.name)).collect();
            if !set.is_empty() {
                self.run_without_turn(program, key, draft, |turn| assign(turn, set).map(|_| ()))?;
            }
            let why = msg!("on_change of the {} `{id}`: `{name}` has another value now", Message::word(level.name()));
            let table = Some(level.name());
            let route_taken =
                Event::RouteTaken { reason: CHANGED, route: shown(route), from: name.clone(), why, table };
            let place = self.place_of(key);
            if !route.leads_away() {
                draft.event(&place, route_taken);
            } else if self.change_way.is_none() {
                let above = |at: FrameTarget| {
                    lineage(key).find(|key| self.frames.get(key).is_some_and(|frame| frame.at == at)).map(str::to_owned)
                };
                let (topic, phase) = (above(FrameTarget::Topic), above(FrameTarget::Phase));
                let action = key.to_owned();
                self.change_way = Some(ChangeWay { name, action, topic, phase, event: Box::new((place, route_taken)) });
            }
        }
        Ok(())
    }

    /// Goes the way that [`set_for_changes`](Self::set_for_changes) has found, after the turn. Words that are about the action, the topic or
    /// the phase of the turn mean nothing where the session has left it anyway.
    pub(crate) fn follow_changes(
        &mut self,
        program: &Program,
        parts: (&Phase, &Topic),
        next: NextStep,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let Some(way) = self.change_way.take() else { return Ok(next) };
        let Some((route, ..)) = find(program, parts, &way.name) else { return Ok(next) };
        let (place, route_taken) = *way.event;
        draft.event(&place, route_taken);
        let key = self.frames.leaf();
        let is_action = self.frames.get(&key).is_some_and(|frame| frame.at == FrameTarget::Action);
        if let Some(inserted) = &route.insert {
            let then = route.then.clone().or(is_action.then_some(RouteTarget::Resume));
            let reason = ExitReason::ExitCriteriaMet;
            let insertion = Insertion::ByRoute { reason, completed: false, then, failure: None };
            self.insert(program, &key, inserted, insertion, ExactValues::new(), draft)?;
            return self.settled(draft);
        }
        let is_below =
            |above: &Option<String>| above.as_deref().is_some_and(|above| lineage(&key).any(|key| key == above));
        let then = route.then.clone().unwrap_or(RouteTarget::Resume);
        let applies = match &then {
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry => key == way.action,
            RouteTarget::SkipTopic => is_below(&way.topic),
            RouteTarget::SkipPhase => is_below(&way.phase),
            RouteTarget::Goto(_) | RouteTarget::End | RouteTarget::Fail => true,
        };
        if !applies {
            return Ok(next);
        }
        if is_action {
            self.continue_at(program, &key, &then, false, draft)?;
        } else {
            self.go_past(program, &key, &then, draft)?;
        }
        self.settled(draft)
    }
}

/// The route for a changed variable, in the innermost table that has one.
fn find<'p>(
    program: &'p Program,
    (phase, topic): (&'p Phase, &'p Topic),
    name: &str,
) -> Option<(&'p Route, RouteLevel, &'p str)> {
    let tables = [
        (&topic.changes, RouteLevel::Topic, topic.id.as_str()),
        (&phase.changes, RouteLevel::Phase, phase.id.as_str()),
        (&program.changes, RouteLevel::Session, program.id.as_str()),
    ];
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
