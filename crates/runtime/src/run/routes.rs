//! Routes: where a session goes on when an action came to its end, or when something stands in its way
//! (docs/routes.md). Every decision is made here, and told.

use crate::program::assignments::assign;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::program::routes::RouteLevel;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, Insertion, ROOT, component, id_of, lineage, parent, told};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::routes::Go;

/// How many routes that may lead in a circle are followed without an answer of the person between them.
pub(crate) const MOST_HOPS: u32 = 100;

/// How many of them an error names.
const HOPS_TOLD: usize = 8;

impl Session {
    /// Decides where the session goes on after `outcome` of the action `key`, tells it, and goes there. `lost` is what went
    /// wrong, where that is known better than the outcome says.
    pub(crate) fn decide(
        &mut self,
        program: &Program,
        key: &str,
        outcome: Outcome,
        lost: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let reason = outcome.exit_reason.unwrap_or(ExitReason::ExitCriteriaMet);
        let completed = outcome.completed;
        let lost = lost.or_else(|| told_by(&outcome));
        let place = self.place_of(key);
        let from = place.action_id.clone().unwrap_or_default();
        let position = self.position(program, key);
        let found = match &position {
            Some(position) => position.route(program, reason),
            // Something that was inserted after the last action.
            None => program.routes.get(reason).map(|route| crate::run::position::Found {
                route,
                level: RouteLevel::Session,
                id: program.id.as_str(),
            }),
        };
        let usual = usual(reason, completed);
        let Some(found) = found else {
            if usual == Go::Fail && self.inside(key).is_some() {
                return self.raise(program, key, (reason, None), lost, draft);
            }
            let why = match usual {
                Go::Fail => "no route is defined for it, and without a route this reason fails the session",
                Go::Next => "no route is defined for it, and after a completed action the session continues",
                _ => "no route is defined for it, and an action that is not completed gets another round",
            };
            self.routed(&place, (reason, None), usual.to_string(), &from, why.into(), draft);
            if usual == Go::Next {
                self.finish_action(key, &outcome);
                return Ok(());
            }
            return self.follow(program, key, &usual, completed, reason, lost, draft);
        };
        let level = Some(found.level);
        if !found.route.set.is_empty() {
            self.set_aside(program, key, &found.route.set, draft)?;
        }
        let written = found.route.then.clone();
        // A route that says not where leaves it at what would have been without one.
        if written.is_none() && found.route.insert.is_none() && usual == Go::Fail && self.inside(key).is_some() {
            return self.raise(program, key, (reason, level), lost, draft);
        }
        let then = written.clone().unwrap_or(usual);
        let mut why = found.table();
        if let Some(id) = &found.route.insert {
            let id = id.clone();
            let route = format!("insert: {id}, then: {then}");
            self.routed(&place, (reason, level), route.clone(), &from, why, draft);
            self.hop(format!("{from} ({}) → {route}", reason.name()))?;
            if let Some(frame) = self.frames.change(key) {
                frame.last = Some(Box::new(outcome.brief()));
            }
            let failure = lost.map(|lost| lost.message);
            let insertion = Insertion::Routed { reason, completed, then: written, failure };
            return self.insert(program, key, &id, insertion, serde_json::Map::new(), draft);
        }
        let then = match then {
            Go::Retry => {
                let most = position.map_or(0, |position| position.topic.strategy.retries());
                let retried = self.frames.get(key).map_or(0, |frame| frame.retries);
                if retried < most {
                    why = msg!("{why}; retry {} of {most}", retried + 1);
                    Go::Retry
                } else {
                    why = msg!("{why} requests a retry, but {retried} of {most} retries are used");
                    Go::Next
                }
            }
            Go::Resume if completed => {
                why = msg!("{why} requests a resume, but the action has no rounds left");
                Go::Next
            }
            other => other,
        };
        self.routed(&place, (reason, level), then.to_string(), &from, why, draft);
        if let Some(frame) = self.frames.change(key) {
            frame.last = Some(Box::new(outcome.brief()));
        }
        self.follow(program, key, &then, completed, reason, lost, draft)
    }

    fn routed(
        &self,
        place: &EventLocation,
        (reason, level): (ExitReason, Option<RouteLevel>),
        route: String,
        from: &str,
        why: Message,
        draft: &mut CommitDraft,
    ) {
        let table = level.map(RouteLevel::name);
        draft.event(place, Event::Routed { reason: reason.name(), route, from: from.to_owned(), why, table });
    }

    #[allow(clippy::too_many_arguments)] // what was decided, and all that it may concern
    fn follow(
        &mut self,
        program: &Program,
        key: &str,
        go: &Go,
        completed: bool,
        reason: ExitReason,
        lost: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        if *go == Go::Fail
            && let Some(lost) = lost
        {
            return Err(lost);
        }
        if *go == Go::Fail && reason.fails() {
            let action = id_of(component(key));
            let message = match reason {
                ExitReason::Error => {
                    msg!("the action `{action}` ended with an error: the reply of the model could not be read")
                }
                _ => msg!("the action `{action}` ended with `{}`", reason.name()),
            };
            return Err(SessionFailure {
                code: "action-error",
                message,
                help: Some(Message::word("`/why` shows what was tried")),
            });
        }
        self.go(program, key, go, completed, draft)
    }

    /// Goes on after what a route inserted: where the route says, or where the action `key` would have gone without it.
    pub(crate) fn go_on(
        &mut self,
        program: &Program,
        key: &str,
        (reason, completed): (ExitReason, bool),
        then: Option<Go>,
        failure: Option<Message>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let then = match then {
            Some(Go::Retry) if self.retries_left(program, key) == 0 => {
                let place = self.place_of(key);
                let from = place.action_id.clone().unwrap_or_default();
                let why =
                    "the route requests a retry after what it inserted, but the maximum number of retries is reached";
                self.routed(&place, (reason, None), Go::Next.to_string(), &from, why.into(), draft);
                return self.go(program, key, &Go::Next, completed, draft);
            }
            Some(then) => return self.go(program, key, &then, completed, draft),
            None => usual(reason, completed),
        };
        let lost = failure.map(|message| SessionFailure { code: "action-error", message, help: None });
        if then == Go::Fail && self.inside(key).is_some() {
            return self.raise(program, key, (reason, None), lost, draft);
        }
        self.follow(program, key, &then, completed, reason, lost, draft)
    }

    /// Goes where a route says, from the action `key`. Frames change; nothing is entered yet.
    pub(crate) fn go(
        &mut self,
        program: &Program,
        key: &str,
        go: &Go,
        completed: bool,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let id = id_of(component(key)).to_owned();
        match go {
            Go::Resume if !completed => {
                if let Some(frame) = self.frames.change(key) {
                    frame.resumed = true;
                    frame.last = None;
                }
                Ok(())
            }
            Go::Next | Go::Resume => {
                let outcome = self.frames.get(key).and_then(|frame| frame.last.as_deref().cloned()).unwrap_or_default();
                self.finish_action(key, &outcome);
                Ok(())
            }
            Go::Retry => self.retry(program, key, draft),
            Go::SkipTopic => {
                self.leave_for(key, |at| *at == FrameTarget::Topic);
                Ok(())
            }
            Go::SkipPhase => {
                self.leave_for(key, |at| *at == FrameTarget::Phase);
                Ok(())
            }
            Go::Goto(target) => {
                self.hop(format!("{id} → goto: {target}"))?;
                self.jump(program, target, draft)
            }
            Go::End => {
                self.end(program);
                Ok(())
            }
            Go::Fail => {
                let message = msg!("a route of `{id}` fails the session");
                Err(SessionFailure { code: "routed-to-fail", message, help: None })
            }
        }
    }

    /// How often a route may still begin an action again.
    fn retries_left(&self, program: &Program, key: &str) -> u32 {
        let most = self.position(program, key).map_or(0, |position| position.topic.strategy.retries());
        most.saturating_sub(self.frames.get(key).map_or(0, |frame| frame.retries))
    }

    /// Begins an action again, unless that was done often enough.
    fn retry(&mut self, program: &Program, key: &str, draft: &mut CommitDraft) -> Result<(), SessionFailure> {
        let position =
            self.position(program, key).ok_or_else(|| SessionFailure::new(msg!("no action for `{}`", told(key))))?;
        let step = position.step;
        self.hop(format!("{} → retry", id_of(component(key))))?;
        if let Some(frame) = self.frames.change(key) {
            frame.retries += 1;
            frame.state = serde_json::Value::Null;
            frame.round = None;
            frame.last = None;
            frame.held = None;
            frame.effect = None;
            frame.resumed = false;
        }
        self.begin_again(program, step, key, draft)
    }

    /// Leaves the innermost frame above `key` that is like this, with all that it holds; everything when there is none.
    fn leave_for(&mut self, key: &str, is_it: impl Fn(&FrameTarget) -> bool) {
        let found = lineage(key).filter(|key| self.frames.get(key).is_some_and(|frame| is_it(&frame.at))).last();
        match found.map(str::to_owned) {
            Some(found) => {
                self.unwind(&found);
                self.leave(&found);
            }
            None => self.unwind(ROOT),
        }
    }

    /// To the topic or phase of this id.
    fn jump(&mut self, program: &Program, target: &str, draft: &mut CommitDraft) -> Result<(), SessionFailure> {
        let phase_of = |phase: usize| program.phases.get(phase);
        let topics = program.phases.iter().enumerate().find_map(|(number, phase)| {
            phase.topics.iter().position(|topic| topic.id == target).map(|topic| (number, Some(topic)))
        });
        let phases = || program.phases.iter().position(|phase| phase.id == target).map(|number| (number, None));
        let Some((phase, topic)) = topics.or_else(phases) else {
            return Err(SessionFailure::new(msg!("there is no topic or phase `{target}`")));
        };
        let here = self.frames.get(ROOT).map(|root| root.next);
        let leaf = self.frames.leaf();
        let open = lineage(&leaf).next().map(str::to_owned);
        let open = open.filter(|key| self.frames.get(key).is_some_and(|frame| frame.at == FrameTarget::Phase));
        let stays = open.filter(|_| here == Some(phase) && topic.is_some());
        match &stays {
            Some(key) => self.unwind(key),
            None => self.unwind(ROOT),
        }
        if let Some(root) = self.frames.change(ROOT) {
            root.next = phase;
        }
        let Some(topic) = topic else { return Ok(()) };
        let key = match stays {
            Some(key) => key,
            None => {
                let Some(phase) = phase_of(phase) else { return Ok(()) };
                self.enter_phase(phase, draft)?
            }
        };
        if let Some(frame) = self.frames.change(&key) {
            frame.next = topic;
            frame.taken = 0;
        }
        Ok(())
    }

    /// To the end of the script.
    pub(crate) fn end(&mut self, program: &Program) {
        self.unwind(ROOT);
        if let Some(root) = self.frames.change(ROOT) {
            root.next = program.phases.len();
        }
    }

    /// Takes away every frame below `key`, with its scope.
    pub(crate) fn unwind(&mut self, key: &str) {
        for below in self.frames.below(key) {
            match self.frames.get(&below).map(|frame| &frame.at) {
                Some(FrameTarget::Skill(_) | FrameTarget::Single(_)) => {
                    self.leave_insertion(&below);
                }
                Some(FrameTarget::Phase | FrameTarget::Topic) => {
                    if let Some(frame) = self.frames.remove(&below) {
                        self.visit_over(&below, &frame);
                    }
                    self.scopes.pop();
                }
                _ => {
                    self.action_over(&below);
                }
            }
        }
    }

    /// The key of the innermost inserted thing that holds the action `key`.
    fn inside(&self, key: &str) -> Option<String> {
        let inserted = |key: &&str| self.frames.get(key).is_some_and(|frame| frame.insertion.is_some());
        lineage(parent(key)).filter(inserted).last().map(str::to_owned)
    }

    /// An action in something inserted ended badly, and has no route of its own: the whole of it ends like this.
    fn raise(
        &mut self,
        program: &Program,
        key: &str,
        (reason, level): (ExitReason, Option<RouteLevel>),
        lost: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = self.place_of(key);
        let from = id_of(component(key)).to_owned();
        let Some(inserted) = self.inside(key) else { return Ok(()) };
        let what = id_of(component(&inserted)).to_owned();
        let why = msg!("no route is defined for it in `{what}`, which therefore ends");
        self.routed(&place, (reason, level), "error".into(), &from, why, draft);
        let lost = lost.unwrap_or_else(|| SessionFailure {
            code: "action-error",
            message: msg!("the action `{from}` of `{what}` ended with `{}`", reason.name()),
            help: Some(Message::word("`/why` shows what was tried")),
        });
        self.unwind(&inserted);
        self.insertion_failed(program, &inserted, lost, draft)
    }

    /// Sets what a route sets, where the action stands.
    fn set_aside(
        &mut self,
        program: &Program,
        key: &str,
        set: &[crate::program::assigned::Assignment],
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        self.beside(program, key, draft, |turn| assign(turn, set).map(|_| ()))
    }

    /// Counts a route that may lead in a circle.
    /// Errors: When there were too many since the last answer.
    pub(crate) fn hop(&mut self, what: String) -> Result<(), SessionFailure> {
        self.head.hops += 1;
        self.head.way.push(what);
        if self.head.way.len() > HOPS_TOLD {
            self.head.way.remove(0);
        }
        if self.head.hops <= MOST_HOPS {
            return Ok(());
        }
        let message = msg!(
            "more than {MOST_HOPS} routes were followed without an answer from the user; the last were: {}",
            self.head.way.join("; ")
        );
        let help =
            Message::word("give one of these routes another target, or let an action between them wait for an answer");
        Err(SessionFailure { code: "endless-routes", message, help: Some(help) })
    }
}

/// Where an action goes that has no route for this reason (docs/routes.md).
fn usual(reason: ExitReason, completed: bool) -> Go {
    match () {
        () if reason.fails() => Go::Fail,
        () if completed => Go::Next,
        () => Go::Resume,
    }
}

/// What an outcome says of what went wrong; nothing when a reply could not be read, of which it holds more than a person
/// should be told.
fn told_by(outcome: &Outcome) -> Option<SessionFailure> {
    let unreadable = outcome.metadata.get("parse_error").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let fails = outcome.exit_reason.is_some_and(ExitReason::fails) && !unreadable;
    let message = outcome.error_message().filter(|_| fails)?;
    Some(SessionFailure { code: "action-error", message, help: Some(Message::word("`/why` shows what was tried")) })
}
