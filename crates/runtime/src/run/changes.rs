//! What was heard before it was asked for, and what was said anew: questions that are skipped, and the routes of `on_change`
//! (docs/routes.md).

use crate::program::assigned::Assignment;
use crate::program::event::Event;
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, ProgramStep, Topic};
use crate::program::route_table::{Route, RouteLevel};
use crate::run::change_way::ChangeWay;
use crate::run::draft::CommitDraft;
use crate::run::frames::{self, FrameTarget, lineage};
use crate::run::head::SessionStatus;
use crate::run::insertion::Insertion;
use crate::run::routing::fail_route_error;
use crate::run::session::Session;
use crate::run::skipped_actions::SkipReason;
use crate::run::topic_exit::TopicExit;
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

    /// Sets what the routes for the variables say that a turn of the action `key`, or a route from it, changed, before the session goes
    /// on, and remembers the first way that one of them has. What these routes change counts as well. What the turn itself set is newer
    /// than anything that a route could set.
    /// Errors: The routes go round in a circle.
    pub(crate) fn set_for_changes(
        &mut self,
        program: &Program,
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        match self.position(program, key) {
            Some(position) => self.set_for_changes_in(program, (position.phase, Some(position.topic)), key, draft),
            None => Ok(()),
        }
    }

    /// [`Session::set_for_changes`] in this phase and topic, which need not be entered.
    pub(crate) fn set_for_changes_in(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, Option<&Topic>),
        key: &str,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        while !self.changed.is_empty() {
            let name = self.changed.remove(0);
            let Some((route, level, id)) = find(program, (phase, topic), &name) else { continue };
            self.count_route_hop(format!("{name} ({CHANGED}) → {}", shown(route)))?;
            let place = self.place_of(key);
            let set: Vec<&Assignment> =
                route.set.iter().filter(|set| !self.written_in_turn.contains(&set.name)).collect();
            if !set.is_empty() {
                self.set_by_route(program, key, &place, set, draft)?;
            }
            let why = msg!("on_change of the {} `{id}`: `{name}` has another value now", Message::word(level.name()));
            let table = Some(level.name());
            let route_taken = Event::RouteTaken { reason: CHANGED, route: shown(route), from: name, why, table };
            if !route.leads_away() {
                draft.event(&place, route_taken);
            } else if self.change_way.is_none() {
                let above = |at: FrameTarget| {
                    lineage(key).find(|key| self.frames.get(key).is_some_and(|frame| frame.at == at)).map(str::to_owned)
                };
                let (topic, phase) = (above(FrameTarget::Topic), above(FrameTarget::Phase));
                // A `finally` is not left by a change that one of its own actions makes.
                let then = route.then.as_ref().map(|then| self.target_in_cleanup(program, key, then, draft));
                let (insert, action, event) = (route.insert.clone(), key.to_owned(), Box::new((place, route_taken)));
                self.change_way = Some(ChangeWay { insert, then, action, topic, phase, event });
            }
        }
        Ok(())
    }

    /// Forgets where changes lead that were not followed, because the turn failed or another way was taken.
    pub(crate) fn forget_changes(&mut self) {
        self.changed.clear();
        self.written_in_turn.clear();
        self.change_way = None;
    }

    /// Goes the way that [`set_for_changes`](Self::set_for_changes) has found, after the turn. Words that are about the action, the topic or
    /// the phase of the turn mean nothing where the session has left it anyway.
    pub(crate) fn follow_changes(
        &mut self,
        program: &Program,
        next: NextStep,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let Some(way) = self.change_way.take() else { return Ok(next) };
        let (place, route_taken) = way.event.as_ref().clone();
        draft.event(&place, route_taken);
        let key = self.frames.leaf();
        let is_action = self.frames.get(&key).is_some_and(|frame| frame.at == FrameTarget::Action);
        let then = self.target_after_change(program, &key, &way, draft);
        if is_action && then.as_ref().is_some_and(|then| *then != RouteTarget::Resume) {
            // They have not started.
            self.drop_branches(&key);
        }
        match (self.insertable(&key, way.insert, &place, draft), then) {
            (Some(inserted), then) => {
                let then = then.or(is_action.then_some(RouteTarget::Resume));
                let reason = ExitReason::ExitCriteriaMet;
                let insertion = Insertion::ByRoute { reason, completed: false, then, failure: None };
                self.insert(program, &key, &inserted, insertion, ExactValues::new(), draft)?;
            }
            (None, None) => return Ok(next),
            (None, Some(then)) if is_action => self.continue_at(program, &key, &then, false, draft)?,
            (None, Some(then)) => self.go_past(program, &key, &then, draft)?,
        }
        // On the way there, a route for a skipped action can change a variable, too; these routes are counted, so this ends.
        let next = self.settled(draft)?;
        self.follow_changes(program, next, draft)
    }

    /// Where `way` leads from the frame `key`, where the session is after the turn; nowhere if the session has left what the way is about,
    /// or leaves it anyway.
    fn target_after_change(
        &mut self,
        program: &Program,
        key: &str,
        way: &ChangeWay,
        draft: &mut CommitDraft,
    ) -> Option<RouteTarget> {
        let then = way.then.clone()?;
        let is_below =
            |above: &Option<String>| above.as_deref().is_some_and(|above| lineage(key).any(|key| key == above));
        let applies = match &then {
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry => key == way.action,
            RouteTarget::SkipTopic => is_below(&way.topic),
            RouteTarget::SkipPhase => is_below(&way.phase),
            RouteTarget::Goto(id) => key == way.action || self.reaches(program, key, id, draft),
            RouteTarget::End | RouteTarget::Fail => true,
        };
        if !applies {
            return None;
        }
        let cleanup = self.cleanup_of(key).filter(|cleanup| !frames::is_below(&way.action, cleanup));
        if cleanup.is_none() {
            return Some(then);
        }
        // The `finally` of the topic has begun since. It ends first.
        let exit = match then {
            RouteTarget::Goto(id) => TopicExit::Goto(id),
            RouteTarget::End => TopicExit::End,
            RouteTarget::SkipPhase => TopicExit::SkipPhase,
            RouteTarget::Fail => {
                let SessionFailure { code, message, help } = fail_route_error(&way.action);
                draft.event(&way.event.0, Event::Error { code, message: message.clone(), help });
                self.starts_ending(SessionStatus::Failed, Some(message), true);
                return None;
            }
            // The session leaves the topic anyway.
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry | RouteTarget::SkipTopic => return None,
        };
        self.enter_finally(program, exit);
        None
    }
}

/// The route for a changed variable, in the innermost table that has one.
fn find<'p>(
    program: &'p Program,
    (phase, topic): (&'p Phase, Option<&'p Topic>),
    name: &str,
) -> Option<(&'p Route, RouteLevel, &'p str)> {
    let topic = topic.map(|topic| (&topic.changes, RouteLevel::Topic, topic.id.as_str()));
    let wider = [
        (&phase.changes, RouteLevel::Phase, phase.id.as_str()),
        (&program.changes, RouteLevel::Session, program.id.as_str()),
    ];
    topic.into_iter().chain(wider).find_map(|(table, level, id)| Some((table.get(name)?, level, id)))
}

/// A route as events and errors name it.
fn shown(route: &Route) -> String {
    let then = route.then.as_ref().unwrap_or(&RouteTarget::Resume);
    match &route.insert {
        Some(id) => format!("insert: {id}, then: {then}"),
        None => then.to_string(),
    }
}
