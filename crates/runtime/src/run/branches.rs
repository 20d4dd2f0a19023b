//! Branches: lists of actions of one action that run at the same time (docs/actions/parallel.md). Each has its own frames and its own
//! layer of variables, which is merged when all have ended. Their turns run together, and each is committed on its own.

use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::value::exact::ExactValues;

use crate::effects::pause::pause;
use crate::notebook::kernel::contract::KernelError;
use crate::program::decision::RequestKind;
use crate::program::event::Event;
use crate::program::flow::{ActionError, BranchBlock, BranchLimits, Flow, WaitReason};
use crate::program::location::EventLocation;
use crate::program::outcome::ExitReason;
use crate::program::program::Program;
use crate::program::work::TurnWork;
use crate::run::branch_state::{BranchEnd, BranchRules, BranchScopes, BranchState};
use crate::run::branch_turns::{BranchTurn, FinishedTurn, asks_in_branch, next_finished};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{
    Frame, FrameTarget, branch_key, component, id_of, is_below, parent, public_path, redacted_key,
};
use crate::run::head::SessionStatus;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use crate::run::turns::{ActionContext, NextStep};

/// The error that stops a session while its branches run, and what the turn had done.
struct BranchStop {
    place: EventLocation,
    error: SessionFailure,
    work: TurnWork,
}

impl Session {
    /// Creates the frames of the branches of the action `key`. Nothing runs yet.
    pub(crate) fn open_branches(
        &mut self,
        key: &str,
        branches: Vec<BranchBlock>,
        limits: BranchLimits,
        draft: &mut CommitDraft,
    ) {
        let visit = match self.count_visit("branches", id_of(component(key)), draft) {
            1 => String::new(),
            count => format!("#{count}"),
        };
        for branch in &branches {
            let path = format!("{}/={}{visit}", public_path(key), branch.id);
            let state = BranchState { path, ..BranchState::default() };
            let at = FrameTarget::Block(branch.block.clone());
            let frame = Frame { at, branch: Some(Box::new(state)), ..Frame::default() };
            self.frames.put(branch_key(key, branch), frame);
        }
        self.frames.set_branches(key, Some(BranchRules { branches, limits }));
    }

    /// Runs the branches of the innermost action until all of them have ended, or none can go on.
    pub(crate) async fn run_branches(&mut self) -> Result<(), RunError> {
        let program = Arc::clone(&self.program);
        let top = self.frames.leaf();
        let mut turns: Vec<BranchTurn> = Vec::new();
        let mut stop: Option<BranchStop> = None;
        loop {
            // What runs before the end of a session is finished in any case.
            let has_budget = self.head.ending.is_none();
            let is_over = stop.is_some() || has_budget && self.is_budget_over(&top);
            if !is_over {
                self.take_arrived().await?;
                let mut draft = CommitDraft::default();
                let is_joined = self.settle_branches(&top, &mut draft)?;
                turns.retain(|turn| self.runs(&turn.branch));
                if is_joined || !draft.events.is_empty() || !draft.counters.is_empty() {
                    self.commit(draft).await?;
                }
                if is_joined {
                    return Ok(());
                }
                self.start_turns(&program, &top, &mut turns)?;
            }
            if turns.is_empty() {
                if is_over {
                    return self.stop_branches(&top, stop).await;
                }
                if self.decided_only.is_some() {
                    return Ok(());
                }
                if self.take_arrived().await? || self.take_due().await? {
                    continue;
                }
                return self.rest(&top).await;
            }
            // Neither a decision nor a time that is due waits for a program that runs for long.
            let left = self.branch_time_left().filter(|_| !is_over);
            let finished = tokio::select! {
                biased;
                finished = next_finished(&mut turns) => finished,
                // Before the time: who decided was earlier.
                () = self.inbox.arrival(), if !is_over => continue,
                () = pause(left.unwrap_or_default()), if left.is_some() => {
                    self.take_due().await?;
                    continue;
                }
            };
            let mut draft = CommitDraft::default();
            let stopped = self.apply_branch_turn(&program, finished, &mut draft)?;
            match stopped {
                // What the calls of the others were stays as well.
                Some(BranchStop { place, work, .. }) if stop.is_some() => self.keep_calls(&place, work, &mut draft),
                stopped => stop = stop.or(stopped),
            }
            self.commit(draft).await?;
        }
    }

    /// Starts branches whose turn it is, and joins the branches of actions whose branches have all ended, until neither is possible.
    /// Returns whether those of `top` are joined.
    fn settle_branches(&mut self, top: &str, draft: &mut CommitDraft) -> Result<bool, RunError> {
        loop {
            let mut changed = false;
            for action in self.frames.parallel_within(top).into_iter().rev() {
                let Some(rules) = self.rules(&action) else { continue };
                changed |= self.start_branches(&action, &rules, draft);
                let ended = |branch: &BranchBlock| {
                    self.branch(&branch_key(&action, branch)).is_none_or(|branch| branch.end.is_some())
                };
                if rules.branches.iter().all(ended) {
                    self.join_branches(&action, &rules, draft)?;
                    if action == top {
                        return Ok(true);
                    }
                    changed = true;
                }
            }
            if !changed {
                return Ok(false);
            }
        }
    }

    /// Starts the branches of an action that may start now. Returns whether anything changed.
    fn start_branches(&mut self, action: &str, rules: &BranchRules, draft: &mut CommitDraft) -> bool {
        let mut changed = false;
        for branch in &rules.branches {
            let key = branch_key(action, branch);
            if self.branch(&key).is_none_or(|state| state.started || state.end.is_some()) {
                continue;
            }
            let end_of = |id: &String| {
                let other = rules.branches.iter().find(|other| other.id == *id)?;
                self.branch(&branch_key(action, other))?.end
            };
            let ends: Vec<Option<BranchEnd>> = branch.after.iter().map(end_of).collect();
            if ends.iter().flatten().any(|end| *end != BranchEnd::Completed) {
                self.end_branch(&key, BranchEnd::Skipped, None);
                changed = true;
                continue;
            }
            let running = rules.branches.iter().filter(|other| self.runs(&branch_key(action, other))).count();
            if ends.iter().any(Option::is_none) || running >= rules.limits.at_once {
                continue;
            }
            self.start_branch(action, rules, branch, draft);
            changed = true;
        }
        changed
    }

    fn start_branch(&mut self, action: &str, rules: &BranchRules, branch: &BranchBlock, draft: &mut CommitDraft) {
        let key = branch_key(action, branch);
        let Some(path) = self.branch(&key).map(|state| state.path.clone()) else { return };
        let seen = self.layers_before(action, rules, branch);
        let outer = self.enclosing_branch(action);
        let scopes = self.in_branch(outer.as_deref(), |session| session.scopes.branch(seen, path));
        self.branches.insert(key.clone(), BranchScopes { scopes, outer: vec![] });
        if let Some(state) = self.change_branch(&key) {
            state.started = true;
        }
        let next = self.in_branch(Some(&key), |session| session.settled(draft));
        let place = self.place_of(&key);
        self.after_branch_turn(&key, &place, next, draft);
    }

    /// What a turn in a branch, or its start, leads to.
    fn after_branch_turn(
        &mut self,
        branch: &str,
        place: &EventLocation,
        next: Result<NextStep, SessionFailure>,
        draft: &mut CommitDraft,
    ) {
        match next {
            Ok(NextStep::Turn) => {}
            Ok(NextStep::Request(request)) => {
                self.in_branch(Some(branch), |session| session.request_decision(*request, place, draft));
            }
            Ok(NextStep::Effect(announced)) => {
                self.in_branch(Some(branch), |session| session.announce(place, announced, draft));
            }
            Ok(NextStep::BranchEnd | NextStep::End) => self.end_branch(branch, BranchEnd::Completed, None),
            // One question at a time: the others are asked after its answer.
            Ok(NextStep::Wait(WaitReason::InterruptedEffect)) => {
                if !self.head.asks_effect {
                    let asked = self.in_branch(Some(branch), |session| {
                        session.ask_about_effect(place, draft);
                        session.frames.leaf()
                    });
                    self.head.effect_in_branch = Some(asked);
                    // The other branches run on.
                    self.status = SessionStatus::Running;
                }
            }
            Ok(NextStep::Wait(WaitReason::Input)) => self.fail_branch(branch, place, asks_in_branch(place), draft),
            Err(error) => self.fail_branch(branch, place, error, draft),
        }
    }

    pub(crate) fn fail_branch(
        &mut self,
        branch: &str,
        place: &EventLocation,
        error: SessionFailure,
        draft: &mut CommitDraft,
    ) {
        let SessionFailure { code, message, help } = error;
        draft.event(place, Event::Error { code, message: message.clone(), help });
        self.end_branch(branch, BranchEnd::Failed, Some(message));
        let action = parent(branch).to_owned();
        let Some(rules) = self.rules(&action).filter(|rules| rules.limits.fail_fast) else { return };
        for other in rules.branches.iter().map(|other| branch_key(&action, other)) {
            match self.branch(&other) {
                Some(state) if state.end.is_some() => {}
                Some(state) if state.started => self.end_branch(&other, BranchEnd::Cancelled, None),
                _ => self.end_branch(&other, BranchEnd::Skipped, None),
            }
        }
    }

    /// Ends a branch: what runs in it is left.
    fn end_branch(&mut self, branch: &str, end: BranchEnd, error: Option<Message>) {
        self.in_branch(Some(branch), |session| session.unwind(branch));
        if let Some(state) = self.change_branch(branch) {
            state.end = Some(end);
            state.error = error;
        }
    }

    /// Begins the next turn of every branch that has one and in which none runs.
    fn start_turns(&mut self, program: &Arc<Program>, top: &str, turns: &mut Vec<BranchTurn>) -> Result<(), RunError> {
        for branch in self.branches_within(top) {
            if !self.runs(&branch) || turns.iter().any(|turn| turn.branch == branch) {
                continue;
            }
            let turn = self.in_branch(Some(&branch), |session| {
                let key = session.frames.leaf();
                let frame = session.frames.get(&key).filter(|frame| frame.at == FrameTarget::Action);
                let frame = frame.ok_or_else(|| RunError::Unreadable {
                    id: session.id.clone(),
                    what: msg!("the branch `{}` is not at an action", redacted_key(&branch)),
                })?;
                let waits = frame.branches.is_some()
                    || session.is_held_back(&key)
                    || frame.request.is_some()
                    || (session.head.asks_effect && session.asks_about_effect(program, &key, frame));
                Ok::<_, RunError>((!waits).then(|| session.start_branch_turn(program, &branch, &key)))
            })?;
            turns.extend(turn);
        }
        Ok(())
    }

    /// Applies a turn of a branch. Returns why the session stops, if it does.
    fn apply_branch_turn(
        &mut self,
        program: &Program,
        finished: FinishedTurn,
        draft: &mut CommitDraft,
    ) -> Result<Option<BranchStop>, RunError> {
        let FinishedTurn { branch, key, result, work } = finished;
        let result = result.and_then(|flow| self.without_waiting(&key, flow));
        self.head.turns += 1;
        self.head.model_calls += u64::from(work.calls);
        self.head.count_tokens(work.tokens_in, work.tokens_out);
        let Some(position) = self.position(program, &key) else {
            let what = Message::word("its frames do not point to an action");
            return Err(RunError::Unreadable { id: self.id.clone(), what });
        };
        let place = EventLocation { round: work.round, ..self.place_of(&key) };
        if matches!(result, Ok(Flow::Wait(WaitReason::Input))) {
            // Nobody sees a question that nobody can answer.
            self.drop_question((&branch, &key), &place, work, draft);
            return Ok(None);
        }
        let (kind, visit_key) = (position.step.kind, &position.visit_key);
        let handles_error = position.route(program, ExitReason::Error).is_some();
        let context = ActionContext { key: &key, visit_key, place: place.clone(), kind };
        let next = self.in_branch(Some(&branch), |session| match result {
            Ok(flow) => session.apply_flow(program, &context, flow, work, draft).map(Ok),
            Err(ActionError::Model(error)) => {
                Ok(Err(BranchStop { place: place.clone(), error: SessionFailure::of_model(&error), work }))
            }
            Err(error @ (ActionError::Source(_) | ActionError::Unusable { .. })) => {
                Ok(Err(BranchStop { place: place.clone(), error: SessionFailure::of(error), work }))
            }
            Err(error @ ActionError::Kernel(_)) if !handles_error => {
                session.close_effect_of(&key, &place, "not started", draft);
                Ok(Err(BranchStop { place: place.clone(), error: SessionFailure::of(error), work }))
            }
            Err(ActionError::Prompt { message, help }) if !handles_error => {
                let error = SessionFailure::of_prompt(message, help);
                Ok(Err(BranchStop { place: place.clone(), error, work }))
            }
            Err(error @ ActionError::Prompt { .. }) => {
                Ok(Ok(session.action_failed(program, &context, SessionFailure::of(error), work, draft)))
            }
            Err(
                ActionError::Failed { code, message, help } | ActionError::Kernel(KernelError { code, message, help }),
            ) => {
                let error = SessionFailure { code, message, help };
                Ok(Ok(session.action_failed(program, &context, error, work, draft)))
            }
        })?;
        match next {
            Ok(next) => self.after_branch_turn(&branch, &place, next, draft),
            Err(stop) => return Ok(Some(stop)),
        }
        Ok(None)
    }

    /// Stops the session when no turn runs any more: because a model cannot be reached, or because the budget is used up.
    async fn stop_branches(&mut self, top: &str, stop: Option<BranchStop>) -> Result<(), RunError> {
        let mut draft = CommitDraft::default();
        // What was announced and did not begin is announced again when the session is resumed.
        for branch in self.branches_within(top) {
            self.in_branch(Some(&branch), |session| {
                let key = session.frames.leaf();
                let effect = session.frames.get(&key).and_then(|frame| frame.effect.as_ref());
                if effect.is_some_and(|effect| session.is_due(&effect.id)) {
                    let place = session.place_of(&key);
                    session.close_effect_of(&key, &place, "not started", &mut draft);
                }
            });
        }
        match stop {
            Some(BranchStop { place, error, work }) => self.stopped(&place, error, work, &mut draft),
            None => {
                self.budget_decides(&mut draft);
            }
        }
        self.commit(draft).await
    }

    /// The session rests: every branch that has not ended waits.
    async fn rest(&mut self, top: &str) -> Result<(), RunError> {
        let is_decision = |kind: &str| kind == RequestKind::Approval.name();
        self.status = match () {
            () if self.head.waiting.is_some() => SessionStatus::WaitingInput,
            () if self.branch_requests.values().any(|request| is_decision(&request.kind)) => {
                SessionStatus::WaitingApproval
            }
            () if !self.branch_requests.is_empty() => SessionStatus::WaitingTime,
            () => {
                let what = msg!("no branch of `{}` can go on", redacted_key(top));
                return Err(RunError::Unreadable { id: self.id.clone(), what });
            }
        };
        self.commit(CommitDraft::default()).await
    }

    /// Leaves the branches of the actions below `key`, and of itself.
    pub(crate) fn drop_branches(&mut self, key: &str) {
        for action in self.frames.parallel_within(key) {
            let Some(rules) = self.rules(&action) else { continue };
            for branch in rules.branches.iter().map(|branch| branch_key(&action, branch)) {
                self.in_branch(Some(&branch), |session| session.unwind(&branch));
                self.branches.remove(&branch);
                self.frames.remove(&branch);
            }
            self.frames.set_branches(&action, None);
        }
    }

    /// Closes the requests of actions in branches that the session has left, and the question about the effect of such an action.
    pub(crate) fn close_withdrawn(&mut self, draft: &mut CommitDraft) {
        let mut withdrawn = self.frames.take_withdrawn();
        if self.status.is_final() {
            withdrawn.extend(self.branch_requests.values().map(|request| request.id.clone()));
        }
        for id in withdrawn {
            let found = self.branch_requests.iter().find(|(_, request)| request.id == id).map(|(key, _)| key.clone());
            let Some(request) = found.as_ref().and_then(|key| self.branch_requests.remove(key)) else { continue };
            let answered = Event::RequestAnswered {
                request_id: request.id.clone(),
                kind: RequestKind::parse(&request.kind).unwrap_or(RequestKind::Approval).name(),
                decision: Some("withdrawn"),
                by: None,
                comment: None,
                values: ExactValues::new(),
                iteration: 1,
            };
            let place = found.map(|key| self.place_of(&key)).unwrap_or_default();
            draft.event_before_end(&place, answered);
            draft.answered.push(request.id);
        }
        let is_gone = |key: &String| self.frames.get(key).is_none();
        if self.head.effect_in_branch.as_ref().is_some_and(is_gone) {
            self.head.effect_in_branch = None;
            self.head.asks_effect = false;
            draft.answered.extend(self.head.waiting.take());
        }
    }

    /// Refuses a route that leads out of the branch that the session works in: the branch would have no end.
    pub(crate) fn check_stays_in_branch(
        &self,
        program: &Program,
        key: &str,
        target: &RouteTarget,
    ) -> Result<(), SessionFailure> {
        let Some(branch) = self.frames.focus() else { return Ok(()) };
        let leaves = match target {
            RouteTarget::SkipPhase | RouteTarget::End => true,
            // What a skill contains is below the branch that calls it.
            RouteTarget::SkipTopic => {
                !self.skill_topic_around(program, key).is_some_and(|topic| is_below(&topic, branch))
            }
            RouteTarget::Goto(id) => {
                let list = self.list_for(program, key, id);
                !list.is_some_and(|(list, _)| list == branch || is_below(&list, branch))
            }
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry | RouteTarget::Fail => false,
        };
        if !leaves {
            return Ok(());
        }
        let message = msg!("the route `{}` of `{}` leads out of its branch", target.to_string(), id_of(component(key)));
        Err(SessionFailure { code: "route-leaves-branch", message, help: None })
    }
}
