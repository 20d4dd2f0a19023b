//! Routes: decides and reports where a session continues when an action ends or something prevents it from continuing
//! (docs/routes.md).

use crate::program::decision::NOT_APPROVED;
use crate::program::evaluation::MISTAKEN_EXPRESSION;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::program::route_table::RouteLevel;
use crate::run::decided_failures::earlier_failure;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, ROOT, component, id_of, lineage, redacted_key};
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use crate::run::topic_exit::TopicExit;
use crate::run::transitions::SessionFailure;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::value::exact::{ExactValue, ExactValues};

/// The maximum number of possibly circular routes that are followed without an answer of the person.
pub(crate) const MAX_HOPS: u32 = 100;

/// Errors that fail the session if no route is defined for them: nobody approved, the script has a mistake that `validate` reports, the author
/// or the person decided so about an effect, the store is damaged, or the machine cannot run the script at all. Any other error belongs to one action, and the session goes on after it.
const FAILING_ERRORS: [&str; 9] = [
    NOT_APPROVED,
    MISTAKEN_EXPRESSION,
    "effect-interrupted",
    "frame-unreadable",
    "frame-unwritable",
    "exec-not-allowed",
    "no-kernel",
    "no-kernels-built-in",
    "kernel-did-not-start",
];

/// Why a session fails after what has no route.
pub(crate) const WITHOUT_ROUTE: &str = "no route is defined for it, and without a route this reason fails the session";

/// Why the session continues after an action that ended with an error.
const WITHOUT_ERROR_ROUTE: &str =
    "no route is defined for it, and after an error the session continues with the next action";

/// The maximum number of routes that an error lists.
const MAX_REPORTED_HOPS: usize = 8;

impl Session {
    /// Decides where the session continues after `outcome` of the action `key`, reports it, and goes there. `error` is the cause, if
    /// the caller knows it better than the outcome.
    pub(crate) fn continue_after_outcome(
        &mut self,
        program: &Program,
        key: &str,
        outcome: Outcome,
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let reason = outcome.exit_reason.unwrap_or(ExitReason::ExitCriteriaMet);
        let completed = outcome.completed;
        let error = error.or_else(|| error_of(&outcome));
        let place = self.place_of(key);
        let from = place.action_id.clone().unwrap_or_default();
        let position = self.position(program, key);
        let found = match &position {
            Some(position) => position.route(program, reason),
            // An insertion after the last action.
            None => program.routes.get(reason).map(|route| crate::run::position::FoundRoute {
                route,
                level: RouteLevel::Session,
                id: program.id.as_str(),
            }),
        };
        let default = default_route(reason, completed, error.as_ref());
        let fails_insertion = self.fails_insertion(program, key, reason, &default);
        let Some(found) = found else {
            if let Some(cleanup) = self.direct_cleanup(key).filter(|_| reason.fails()) {
                self.cleanup_action_failed((key, &cleanup), reason, &outcome, error, draft);
                return Ok(());
            }
            if fails_insertion {
                return self.fail_insertion(program, key, (reason, None), error, draft);
            }
            let default = self.target_within_plan(key, default, (reason, error.as_ref()), &place, draft);
            let why = match default {
                RouteTarget::Fail => WITHOUT_ROUTE,
                RouteTarget::Next if reason == ExitReason::Error => {
                    let error = error.unwrap_or_else(|| unread_reply(key, reason));
                    draft.event(&place, Event::Error { code: error.code, message: error.message, help: error.help });
                    self.report_route(
                        &place,
                        (reason, None),
                        default.to_string(),
                        &from,
                        WITHOUT_ERROR_ROUTE.into(),
                        draft,
                    );
                    self.finish_action(key, &outcome);
                    return Ok(());
                }
                RouteTarget::Next => "no route is defined for it, and after a completed action the session continues",
                _ => "no route is defined for it, and an action that is not completed gets another round",
            };
            self.report_route(&place, (reason, None), default.to_string(), &from, why.into(), draft);
            if default == RouteTarget::Next {
                self.finish_action(key, &outcome);
                return Ok(());
            }
            return self.continue_at_or_fail(program, key, &default, completed, reason, error, draft);
        };
        let level = Some(found.level);
        // Whoever has a route for it handles it, also with one that only sets or inserts.
        let is_mistake = error.as_ref().is_some_and(|error| error.code == MISTAKEN_EXPRESSION);
        let default = if is_mistake { default_route(reason, completed, None) } else { default };
        let fails_insertion = self.fails_insertion(program, key, reason, &default);
        if !found.route.set.is_empty() {
            self.set_by_route(program, key, &place, &found.route.set, draft)?;
            self.written_in_turn.extend(found.route.set.iter().map(|set| set.name.clone()));
            self.set_for_changes(program, key, draft)?;
        }
        let written = found.route.then.clone();
        let written = written.map(|then| self.target_within_plan(key, then, (reason, error.as_ref()), &place, draft));
        let inserted = self.insertable(key, found.route.insert.clone(), &place, draft);
        // A route without a target leaves the session where it would be without a route.
        if written.is_none() && inserted.is_none() && fails_insertion {
            return self.fail_insertion(program, key, (reason, level), error, draft);
        }
        let then = written.clone().unwrap_or(default);
        let mut why = found.table();
        if let Some(id) = inserted {
            let ends_insertion = written.is_none() && fails_insertion;
            let then = if ends_insertion { "error".to_owned() } else { then.to_string() };
            let route = format!("insert: {id}, then: {then}");
            self.report_route(&place, (reason, level), route.clone(), &from, why, draft);
            self.count_route_hop(format!("{from} ({}) → {route}", reason.name()))?;
            if let Some(frame) = self.frames.change(key) {
                frame.last = Some(Box::new(outcome.brief()));
            }
            let failure = error.map(|error| error.message);
            let insertion = Insertion::ByRoute { reason, completed, then: written, failure };
            return self.insert(program, key, &id, insertion, ExactValues::new(), draft);
        }
        let then = match then {
            RouteTarget::Retry => {
                let max_retries = position.map_or(0, |position| position.topic.strategy.retries());
                let retried = self.frames.get(key).map_or(0, |frame| frame.retries);
                if retried < max_retries {
                    why = msg!("{why}; retry {} of {max_retries}", retried + 1);
                    RouteTarget::Retry
                } else {
                    why = msg!("{why} requests a retry, but {retried} of {max_retries} retries are used");
                    RouteTarget::Next
                }
            }
            RouteTarget::Resume if completed => {
                why = msg!("{why} requests a resume, but the action has no rounds left");
                RouteTarget::Next
            }
            other => other,
        };
        self.report_route(&place, (reason, level), then.to_string(), &from, why, draft);
        if let Some(frame) = self.frames.change(key) {
            frame.last = Some(Box::new(outcome.brief()));
        }
        self.continue_at_or_fail(program, key, &then, completed, reason, error, draft)
    }

    pub(crate) fn report_route(
        &self,
        place: &EventLocation,
        (reason, level): (ExitReason, Option<RouteLevel>),
        route: String,
        from: &str,
        why: Message,
        draft: &mut CommitDraft,
    ) {
        let table = level.map(RouteLevel::name);
        draft.event(place, Event::RouteTaken { reason: reason.name(), route, from: from.to_owned(), why, table });
    }

    #[allow(clippy::too_many_arguments)] // what was decided, and all that it may concern
    fn continue_at_or_fail(
        &mut self,
        program: &Program,
        key: &str,
        target: &RouteTarget,
        completed: bool,
        reason: ExitReason,
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if *target == RouteTarget::Fail
            && let Some(cleanup) = self.direct_cleanup(key)
        {
            self.cleanup_action_failed((key, &cleanup), reason, &Outcome::default(), error, draft);
            return Ok(());
        }
        if *target == RouteTarget::Fail && self.cleanup_around(key).is_some() {
            if let Some(SessionFailure { code, message, help }) = error {
                draft.event(&self.place_of(key), Event::Error { code, message, help });
            }
            return self.continue_at(program, key, target, completed, draft);
        }
        if *target == RouteTarget::Fail
            && let Some(error) = error
        {
            return Err(error);
        }
        if *target == RouteTarget::Fail && reason.fails() {
            return Err(unread_reply(key, reason));
        }
        self.continue_at(program, key, target, completed, draft)
    }

    /// Continues after an insertion of a route: at the route's target, or as without a route.
    pub(crate) fn continue_after_insertion(
        &mut self,
        program: &Program,
        key: &str,
        (reason, completed): (ExitReason, bool),
        then: Option<RouteTarget>,
        failure: Option<Message>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if self.is_container(key) {
            return self.go_past(program, key, &then.unwrap_or(RouteTarget::Next), draft);
        }
        let then = match then {
            Some(RouteTarget::Retry) if self.retries_left(program, key) == 0 => {
                let place = self.place_of(key);
                let from = place.action_id.clone().unwrap_or_default();
                let why =
                    "the route requests a retry after what it inserted, but the maximum number of retries is reached";
                self.report_route(&place, (reason, None), RouteTarget::Next.to_string(), &from, why.into(), draft);
                return self.continue_at(program, key, &RouteTarget::Next, completed, draft);
            }
            Some(then) => return self.continue_at(program, key, &then, completed, draft),
            None => default_route(reason, completed, None),
        };
        let error = failure.map(earlier_failure);
        if self.fails_insertion(program, key, reason, &then) {
            return self.fail_insertion(program, key, (reason, None), error, draft);
        }
        self.continue_at_or_fail(program, key, &then, completed, reason, error, draft)
    }

    /// Follows a route from the action `key`. Frames change; nothing is entered yet.
    pub(crate) fn continue_at(
        &mut self,
        program: &Program,
        key: &str,
        target: &RouteTarget,
        completed: bool,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let id = id_of(component(key)).to_owned();
        let target = &self.target_in_cleanup(program, key, target, draft);
        self.check_stays_in_branch(program, key, target)?;
        if let Some(error) = self.failure_left_by(program, key, target) {
            return Err(error);
        }
        match target {
            RouteTarget::Resume if !completed => {
                if let Some(frame) = self.frames.change(key) {
                    frame.resumed = true;
                    frame.last = None;
                }
                Ok(())
            }
            RouteTarget::Next | RouteTarget::Resume => {
                let outcome = self.frames.get(key).and_then(|frame| frame.last.as_deref().cloned()).unwrap_or_default();
                self.finish_action(key, &outcome);
                Ok(())
            }
            RouteTarget::Retry => self.retry(program, key, draft),
            RouteTarget::SkipTopic => {
                if let Some(topic) = self.skill_topic_around(program, key) {
                    self.unwind(&topic);
                    self.finish_action(&topic, &Outcome::done(ExitReason::ExitCriteriaMet));
                    return Ok(());
                }
                if !self.enter_finally(program, TopicExit::Leave) {
                    self.leave_to(key, |at| *at == FrameTarget::Topic);
                }
                Ok(())
            }
            RouteTarget::SkipPhase => {
                if !self.enter_finally(program, TopicExit::SkipPhase) {
                    self.leave_to(key, |at| *at == FrameTarget::Phase);
                }
                Ok(())
            }
            RouteTarget::Goto(part) => {
                self.count_route_hop(format!("{id} → goto: {part}"))?;
                self.jump(program, key, part, draft)
            }
            RouteTarget::End => {
                self.end(program);
                Ok(())
            }
            RouteTarget::Fail => Err(fail_route_error(key)),
        }
    }

    /// The number of restarts of an action that routes have left.
    fn retries_left(&self, program: &Program, key: &str) -> u32 {
        let max_retries = self.position(program, key).map_or(0, |position| position.topic.strategy.retries());
        max_retries.saturating_sub(self.frames.get(key).map_or(0, |frame| frame.retries))
    }

    /// Restarts an action and counts the retry.
    fn retry(&mut self, program: &Program, key: &str, draft: &mut CommitDraft) -> Result<(), SessionFailure> {
        let position = self
            .position(program, key)
            .ok_or_else(|| SessionFailure::new(msg!("no action for `{}`", redacted_key(key))))?;
        let step = position.step;
        self.count_route_hop(format!("{} → retry", id_of(component(key))))?;
        if let Some(frame) = self.frames.change(key) {
            frame.retries += 1;
            frame.state = ExactValue::default();
            frame.round = None;
            frame.last = None;
            frame.hold_answer(None);
            frame.effect = None;
            frame.resumed = false;
        }
        self.restart_action(program, step, key, draft)
    }

    /// Leaves the innermost frame above `key` that matches, with its descendants; all frames if none matches.
    pub(crate) fn leave_to(&mut self, key: &str, matches: impl Fn(&FrameTarget) -> bool) {
        let found = lineage(key).filter(|key| self.frames.get(key).is_some_and(|frame| matches(&frame.at))).last();
        match found.map(str::to_owned) {
            Some(found) => {
                self.unwind(&found);
                self.leave(&found);
            }
            None => self.unwind(ROOT),
        }
    }

    /// Jumps to the end of the script, after the `finally` of the topic.
    pub(crate) fn end(&mut self, program: &Program) {
        if self.enter_finally(program, TopicExit::End) {
            return;
        }
        self.unwind(ROOT);
        if let Some(root) = self.frames.change(ROOT) {
            root.next = program.phases.len();
        }
    }

    /// Removes every frame below `key`, with its scope.
    pub(crate) fn unwind(&mut self, key: &str) {
        self.drop_branches(key);
        for below in self.frames.below(key) {
            match self.frames.get(&below).map(|frame| &frame.at) {
                Some(FrameTarget::Skill(_) | FrameTarget::Single(_)) => {
                    self.leave_insertion(&below);
                }
                Some(FrameTarget::Phase | FrameTarget::Topic) => {
                    if let Some(frame) = self.frames.remove(&below) {
                        self.visit_ended(&below, &frame);
                    }
                    self.scopes.pop();
                }
                _ => {
                    self.remove_action(&below);
                }
            }
        }
    }

    /// Counts a possibly circular route.
    /// Errors: There were too many since the last answer.
    pub(crate) fn count_route_hop(&mut self, route: String) -> Result<(), SessionFailure> {
        self.head.route_hops += 1;
        self.head.recent_routes.push(route);
        if self.head.recent_routes.len() > MAX_REPORTED_HOPS {
            self.head.recent_routes.remove(0);
        }
        if self.head.route_hops <= MAX_HOPS {
            return Ok(());
        }
        let message = msg!(
            "more than {MAX_HOPS} routes were followed without an answer from the user; the last were: {}",
            self.head.recent_routes.join("; ")
        );
        let help =
            Message::word("give one of these routes another target, or let an action between them wait for an answer");
        Err(SessionFailure { code: "endless-routes", message, help: Some(help) })
    }
}

/// The error of a session that a route of the action `key` fails.
pub(crate) fn fail_route_error(key: &str) -> SessionFailure {
    let id = id_of(component(key));
    let message = msg!("a route of `{id}` fails the session");
    SessionFailure { code: "routed-to-fail", message, help: None }
}

/// The default route for this reason (docs/routes.md). `error` is the cause of an exit with an error.
pub(crate) fn default_route(reason: ExitReason, completed: bool, error: Option<&SessionFailure>) -> RouteTarget {
    let fails = || error.is_some_and(|error| FAILING_ERRORS.contains(&error.code));
    match () {
        () if reason == ExitReason::Error && !fails() => RouteTarget::Next,
        () if reason.fails() => RouteTarget::Fail,
        () if completed => RouteTarget::Next,
        () => RouteTarget::Resume,
    }
}

/// The error for an action that ended with `reason` and no message.
pub(crate) fn unread_reply(key: &str, reason: ExitReason) -> SessionFailure {
    let action = id_of(component(key));
    let message = match reason {
        ExitReason::Error => {
            msg!("the action `{action}` ended with an error: the reply of the model could not be read")
        }
        _ => msg!("the action `{action}` ended with `{}`", reason.name()),
    };
    SessionFailure { code: "action-error", message, help: Some(Message::word("`/why` shows what was tried")) }
}

/// The error in an outcome; `None` for an unreadable reply, whose outcome contains more than a person should see.
fn error_of(outcome: &Outcome) -> Option<SessionFailure> {
    let unreadable = outcome.metadata.get("parse_error").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let fails = outcome.exit_reason.is_some_and(ExitReason::fails) && !unreadable;
    let message = outcome.error_message().filter(|_| fails)?;
    Some(SessionFailure { code: "action-error", message, help: Some(Message::word("`/why` shows what was tried")) })
}
