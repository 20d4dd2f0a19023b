//! Turns of branches: they run at the same time, so each has a copy of what it reads of the session.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tracing::Instrument;

use crate::notebook::state::NotebookState;
use crate::plan::access::PlanAccess;
use crate::program::flow::{ActionError, Flow};
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::transcript::RecentTranscript;
use crate::program::turn::{Turn, TurnResources};
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, Frames};
use crate::run::notebook::{StoredCells, check_cell_limits};
use crate::run::session::Session;
use crate::run::spans::record_turn;
use crate::run::transitions::SessionFailure;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::Scopes;

/// A turn of a branch that runs.
pub(crate) struct BranchTurn {
    /// The key of the frame of the branch.
    pub branch: String,
    turn: Pin<Box<dyn Future<Output = FinishedTurn> + Send>>,
}

/// A turn of a branch that ended and is not applied.
pub(crate) struct FinishedTurn {
    pub branch: String,
    /// The key of the frame of its action.
    pub key: String,
    pub result: Result<Flow, ActionError>,
    pub work: TurnWork,
}

/// What the turn reads, as it was when it began.
struct TurnCopy {
    program: Arc<Program>,
    frames: Frames,
    key: String,
    place: EventLocation,
    session_id: String,
    recent: RecentTranscript,
    services: Services,
    plans: PlanAccess,
    max_rounds: Option<u32>,
    last_seq: u64,
    branch: String,
    notebook: NotebookState,
    cells: StoredCells,
    masker: Masker,
    push_backs: u32,
    effect_is_due: bool,
    is_in_cleanup: bool,
    scopes: Scopes,
}

impl TurnCopy {
    async fn run(self) -> (Result<Flow, ActionError>, TurnWork) {
        let Some((frame, position)) = self.frames.get(&self.key).zip(self.frames.position(&self.program, &self.key))
        else {
            let message = Message::word("its frames do not point to an action");
            return (Err(ActionError::failed("frame-unreadable", message)), TurnWork::default());
        };
        let reasons_with_route = position.reasons_with_route(&self.program);
        let resources = TurnResources {
            program: &self.program,
            phase: position.phase,
            topic: position.topic,
            place: &self.place,
            session_id: &self.session_id,
            kind: position.step.kind,
            state: &frame.state,
            // Branches do not talk to the person.
            answer: None,
            entered: frame.last.as_deref(),
            recent: &self.recent,
            services: &self.services,
            plans: &self.plans,
            reasons_with_route: &reasons_with_route,
            resumed: frame.resumed,
            advice: None,
            max_rounds: self.max_rounds,
            calls_before: frame.calls,
            last_seq: self.last_seq,
            branch: &self.branch,
            notebook: &self.notebook,
            cells: &self.cells,
            masker: &self.masker,
            effect: frame.effect.as_ref(),
            effect_is_due: self.effect_is_due,
            decision: frame.decision.as_deref(),
            push_backs: self.push_backs,
            is_in_cleanup: self.is_in_cleanup,
            on_interrupted: position.step.on_interrupted,
            options: &position.step.options,
        };
        let turn = Turn::new(resources, self.scopes.clone());
        let result = position.step.action.turn(&turn).await;
        let work = turn.into_work();
        let result = result.and_then(|flow| check_cell_limits(&work).map(|()| flow));
        record_turn(position.step.kind, work.round, result.as_ref().err());
        (result, work)
    }
}

impl Session {
    /// Begins the next turn of the branch that the session works in: of the action `key`.
    pub(crate) fn start_branch_turn(&self, program: &Arc<Program>, branch: &str, key: &str) -> BranchTurn {
        let effect = self.frames.get(key).and_then(|frame| frame.effect.as_ref());
        let copy = TurnCopy {
            program: Arc::clone(program),
            frames: self.frames.clone(),
            place: self.place_of(key),
            session_id: self.id.clone(),
            recent: self.recent.clone(),
            services: self.services.clone(),
            plans: self.plans.clone(),
            max_rounds: self.round_limit(key),
            last_seq: self.last_seq,
            branch: self.branch_numbers(branch),
            notebook: self.notebook.clone(),
            cells: self.cells.clone(),
            masker: self.masker.clone(),
            push_backs: self.push_backs(key),
            effect_is_due: effect.is_some_and(|effect| self.is_due(&effect.id)),
            is_in_cleanup: self.cleanup_of(key).is_some(),
            scopes: self.scopes.clone(),
            key: key.to_owned(),
        };
        // As with every turn: if it is dropped, it is unknown how far the effect got.
        if let Some(effect) = effect {
            self.mark_started(&effect.id);
        }
        let span = self.branch_turn_span(key);
        let (name, key) = (branch.to_owned(), key.to_owned());
        let turn = async move {
            let (result, work) = copy.run().await;
            FinishedTurn { branch: name, key, result, work }
        };
        let turn = Box::pin(turn.instrument(span));
        BranchTurn { branch: branch.to_owned(), turn }
    }

    /// Drops a turn of the action `key` that asks the user, keeps its model calls, and fails its branch.
    pub(crate) fn drop_question(
        &mut self,
        (branch, key): (&str, &str),
        place: &EventLocation,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) {
        self.in_branch(Some(branch), |session| {
            if let Some(frame) = session.frames.change(key) {
                frame.calls += work.calls;
            }
            session.keep_calls(place, work, draft);
        });
        self.fail_branch(branch, place, asks_in_branch(place), draft);
    }

    /// Whether the next turn of an action would ask about its effect.
    pub(crate) fn asks_about_effect(&self, program: &Program, key: &str, frame: &Frame) -> bool {
        let Some(effect) = frame.effect.as_ref().filter(|effect| effect.answer.is_none()) else { return false };
        let position = self.position(program, key);
        let asks = position.is_none_or(|position| position.step.on_interrupted == OnInterrupted::Ask);
        // Nothing but an answer decides about what an earlier session has done.
        !self.is_due(&effect.id) && (asks || effect.is_earlier)
    }
}

/// Waits until one of the turns ends, and removes it. If several have ended, the first of them.
/// Never returns if there are none.
pub(crate) async fn next_finished(turns: &mut Vec<BranchTurn>) -> FinishedTurn {
    poll_fn(|context| {
        let ended = turns.iter_mut().enumerate().find_map(|(number, turn)| match turn.turn.as_mut().poll(context) {
            Poll::Ready(finished) => Some((number, finished)),
            Poll::Pending => None,
        });
        match ended {
            Some((number, finished)) => {
                drop(turns.remove(number));
                Poll::Ready(finished)
            }
            None => Poll::Pending,
        }
    })
    .await
}

/// The error of an action in a branch that asks the person.
pub(crate) fn asks_in_branch(place: &EventLocation) -> SessionFailure {
    let key = place.action_id.clone().unwrap_or_default();
    let message = msg!("the action `{key}` asks the user, which is not possible in a branch");
    SessionFailure { code: "branch-asks", message, help: None }
}
