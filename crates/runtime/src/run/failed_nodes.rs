//! Phases and topics that could not be entered because their `condition` or `for_each` failed: the routes for `error` that apply to them
//! (docs/routes.md).

use crate::program::evaluation::MISTAKEN_EXPRESSION;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, Topic};
use crate::program::route_table::{RouteLevel, RouteTable};
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, ROOT, parent};
use crate::run::insertion::Insertion;
use crate::run::position::FoundRoute;
use crate::run::routing::WITHOUT_ROUTE;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::value::exact::ExactValues;

/// The code of a `for_each` whose value is not a list.
pub(crate) const NOT_A_LIST: &str = "for-each-not-a-list";

/// The maximum length, in characters, of the part of a warning by which it is recognized as reported.
const MAX_WARNING_CHARS: usize = 200;

impl Session {
    /// Handles a phase, or a topic of it, whose `condition` or `for_each` failed: it exits with `error` before it is entered.
    pub(crate) fn node_failed(
        &mut self,
        program: &Program,
        (phase, topic): (&Phase, Option<&Topic>),
        place: &EventLocation,
        error: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let container = self.frames.leaf();
        let id = topic.map_or(&phase.id, |topic| &topic.id);
        let taken = |route: String, why: Message, table: Option<&'static str>| Event::RouteTaken {
            reason: ExitReason::Error.name(),
            route,
            from: id.clone(),
            why,
            table,
        };
        let found = route_of(program, phase, topic);
        if found.is_none() && error.code == MISTAKEN_EXPRESSION {
            draft.event(place, taken(RouteTarget::Fail.to_string(), Message::word(WITHOUT_ROUTE), None));
            return Err(error);
        }
        let SessionFailure { code, message, help } = error;
        draft.event(place, Event::Error { code, message: message.clone(), help });
        let Some(found) = found else {
            let why = msg!("no route is defined for it, and a part that cannot be evaluated is skipped");
            draft.event(place, taken(RouteTarget::Next.to_string(), why, None));
            self.next_child(&container);
            return Ok(());
        };
        if !found.route.set.is_empty() {
            self.set_by_route(program, &container, place, &found.route.set, draft)?;
            self.written_in_turn.extend(found.route.set.iter().map(|set| set.name.clone()));
            self.set_for_changes_in(program, (phase, topic), &container, draft)?;
        }
        let then = found.route.then.clone().unwrap_or(RouteTarget::Next);
        if let Some(inserted) = self.insertable(&container, found.route.insert.clone(), place, draft) {
            let route = format!("insert: {inserted}, then: {then}");
            draft.event(place, taken(route.clone(), found.table(), Some(found.level.name())));
            self.count_route_hop(format!("{id} ({}) → {route}", ExitReason::Error.name()))?;
            let insertion = Insertion::ByRoute {
                reason: ExitReason::Error,
                completed: true,
                then: Some(then),
                failure: Some(message),
            };
            return self.insert(program, &container, &inserted, insertion, ExactValues::new(), draft);
        }
        draft.event(place, taken(then.to_string(), found.table(), Some(found.level.name())));
        self.go_past(program, &container, &then, draft)
    }

    /// Whether the frame is a session or phase: what was inserted below it follows a phase or topic that was not entered.
    pub(crate) fn is_container(&self, key: &str) -> bool {
        self.frames.get(key).is_some_and(|frame| matches!(frame.at, FrameTarget::Session | FrameTarget::Phase))
    }

    /// Follows a route from the next child of the frame `container`, which was not entered and therefore cannot be resumed or retried.
    pub(crate) fn go_past(
        &mut self,
        program: &Program,
        container: &str,
        then: &RouteTarget,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        match then {
            RouteTarget::Goto(_) | RouteTarget::End | RouteTarget::Fail => {
                self.continue_at(program, container, then, true, draft)?;
            }
            RouteTarget::SkipPhase if container != ROOT => self.leave(container),
            RouteTarget::Next
            | RouteTarget::Resume
            | RouteTarget::Retry
            | RouteTarget::SkipTopic
            | RouteTarget::SkipPhase => self.next_child(container),
        }
        Ok(())
    }

    /// What was inserted for a phase or topic that was not entered failed: this is reported, and the route continues.
    pub(crate) fn failed_before_entry(
        &mut self,
        program: &Program,
        container: &str,
        then: Option<RouteTarget>,
        error: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = self.place_of(container);
        let SessionFailure { code, message, help } = error;
        draft.event(&place, Event::Error { code, message, help });
        self.go_past(program, container, &then.unwrap_or(RouteTarget::Next), draft)
    }

    /// Whether a warning is reported for the first time in this session. The prompts of all rounds contain the same texts.
    pub(crate) fn is_new_warning(&mut self, place: &EventLocation, message: &Message, draft: &mut CommitDraft) -> bool {
        let text: String = message.to_string().chars().take(MAX_WARNING_CHARS).collect();
        let name = format!("warned:{}:{text}", parent(&place.path));
        let count = self.counters.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            return false;
        }
        draft.counters.push((name, 1));
        true
    }
}

/// The route for `error` of a topic or a phase: in its own table, then the wider ones.
fn route_of<'p>(program: &'p Program, phase: &'p Phase, topic: Option<&'p Topic>) -> Option<FoundRoute<'p>> {
    let topic = topic.map(|topic| (&topic.routes, RouteLevel::Topic, topic.id.as_str()));
    let wider: [(&RouteTable, RouteLevel, &str); 2] = [
        (&phase.routes, RouteLevel::Phase, phase.id.as_str()),
        (&program.routes, RouteLevel::Session, program.id.as_str()),
    ];
    topic.into_iter().chain(wider).find_map(|(table, level, id)| {
        let route = table.get(ExitReason::Error)?;
        Some(FoundRoute { route, level, id })
    })
}
