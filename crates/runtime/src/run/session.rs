//! The `Session` type: a session while a process runs it.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use crate::notebook::state::NotebookState;
use crate::plan::access::PlanAccess;
use crate::program::event::{Event, Speaker, Summary};
use crate::program::host_services::HostServices;
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::transcript::RecentTranscript;
use crate::run::branch_state::BranchScopes;
use crate::run::change_way::ChangeWay;
use crate::run::compensation_records::Compensations;
use crate::run::decision_inbox::DecisionInbox;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::Frames;
use crate::run::head::{Head, SessionStatus};
use crate::run::held_commits::HeldCommits;
use crate::run::mailbox::{Job, Mailbox, PendingAnalysis};
use crate::run::notebook::StoredCells;
use crate::run::planner::{Planner, RequestedPlan};
use bcc_lang::template::names::MAX_VALUE_BYTES;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::Scopes;
use bcc_store::contract::{SessionLock, Store};
use bcc_store::rows::{RequestRow, VariableRow};

/// The scope of values that must be masked as long as the session is stored; it exists only in the store.
pub(crate) const MASKED_VALUES: &str = "hidden";

/// A running session: its program, its state as last committed, and the services it needs.
pub struct Session {
    pub id: String,
    /// The program in this visit of a topic: a plan may have changed the topic.
    pub(crate) program: Arc<Program>,
    /// The program of the script.
    pub base: Arc<Program>,
    /// The analyses of monitors.
    pub(crate) mailbox: Mailbox,
    /// Counters that changed since the last commit.
    pub(crate) changed_counters: Vec<(String, u64)>,
    /// The analysis to start once the running turn is committed.
    pub(crate) next_job: Option<Job>,
    /// Requests to monitors and planners that are deferred because the budget is used up.
    pub(crate) deferred: (Vec<PendingAnalysis>, Option<RequestedPlan>),
    /// The notebook without its cells, as committed.
    pub(crate) notebook: NotebookState,
    /// The reader of its cells.
    pub(crate) cells: StoredCells,
    /// The external effects that this process announced and no turn has started.
    pub(crate) due: Mutex<BTreeSet<String>>,
    /// The plan in progress.
    pub(crate) planner: Planner,
    pub(crate) services: Services,
    pub(crate) store: Arc<dyn Store>,
    /// The plans of its user.
    pub plans: PlanAccess,
    pub(crate) status: SessionStatus,
    pub(crate) head: Head,
    pub(crate) answers: u64,
    pub(crate) revision: u64,
    pub(crate) last_seq: u64,
    pub(crate) frames: Frames,
    pub(crate) scopes: Scopes,
    /// The scopes outside the running skills, outermost first.
    pub(crate) outer: Vec<Scopes>,
    /// The scopes of the branches that have started, by the keys of their frames. Those of the branch that the session works in are
    /// exchanged with `scopes` and `outer`.
    pub(crate) branches: BTreeMap<String, BranchScopes>,
    pub(crate) counters: BTreeMap<String, u64>,
    /// What undoes the actions that are completed.
    pub(crate) compensations: Compensations,
    /// The rows of the variables as they are stored, while compensations run.
    pub(crate) stored_variables: Option<Vec<VariableRow>>,
    pub(crate) recent: RecentTranscript,
    /// The open request, if the session waits for a decision or a time outside of branches.
    pub(crate) request: Option<RequestRow>,
    /// The open requests of branches, by the keys of their actions.
    pub(crate) branch_requests: BTreeMap<String, RequestRow>,
    /// The answer for the next turn.
    pub(crate) pending: Option<String>,
    /// Whether the triggers were checked against the newest answer.
    pub(crate) triggers_checked: bool,
    /// The `metadata` of the turn that is being committed, for the triggers.
    pub(crate) metadata: Map<String, Value>,
    /// The watched variables that the running turn changed; empty between turns.
    pub(crate) changed: Vec<String>,
    /// The names of what the running turn and the routes from its action set.
    pub(crate) written_in_turn: Vec<String>,
    /// Where these changes lead after the turn.
    pub(crate) change_way: Option<ChangeWay>,
    /// Masks sensitive values in all output.
    pub masker: Masker,
    /// The clock value when the active time was last added up.
    pub(crate) counted_until_ms: u64,
    /// Decisions that arrive while branches run.
    pub(crate) inbox: Arc<DecisionInbox>,
    /// What is committed and not written yet.
    pub(crate) held: Arc<HeldCommits>,
    /// Why an observer lets the session take no other turn in this process.
    pub(crate) halted: Option<Message>,
    /// The actions that may take turns, while only decided ones may.
    pub(crate) decided_only: Option<BTreeSet<String>>,
    /// The script and the model, as named in events.
    pub(crate) script: String,
    pub(crate) model: String,
    /// Held while the process runs the session.
    pub(crate) lock: Arc<dyn SessionLock>,
}

/// Why [`Session::advance`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPause {
    /// It waits for an answer.
    Waiting,
    /// It reached its end.
    Completed,
    /// It cannot continue.
    Failed,
    /// The model could not be reached, or the budget is used up; it can be resumed.
    Stopped,
    /// Somebody cancelled it.
    Cancelled,
}

impl SessionPause {
    /// The name in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The result of submitting an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenAnswer {
    /// It is committed.
    Yes,
    /// Its `answer_id` was used before; a warning was committed, and nothing else changed.
    AlreadyUsed,
    /// Its `answer_id` belongs to a future question; a warning was committed, and nothing else changed.
    Unknown,
    /// The session expects no answer; nothing changed.
    NotAwaited,
    /// It is longer than a variable may be ([`MAX_VALUE_BYTES`]); nothing changed.
    TooLong,
}

impl Session {
    /// The lock of the session, which is held until the session and all copies of the lock are dropped.
    pub fn lock(&self) -> Arc<dyn SessionLock> {
        Arc::clone(&self.lock)
    }

    /// The status of the session.
    pub fn status(&self) -> SessionStatus {
        self.status
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The services of the host that it uses.
    pub fn host(&self) -> &HostServices {
        &self.services.host
    }

    /// The totals so far.
    pub fn totals(&self) -> Summary {
        self.head.summary(self.answers, None)
    }

    /// The number of accepted answers.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The id of what it waits for.
    pub fn awaited(&self) -> Option<&str> {
        self.head.waiting.as_deref()
    }

    /// Whether it waits for an answer of the person to what was said, and for nothing else.
    pub fn awaits_answer(&self) -> bool {
        self.status == SessionStatus::WaitingInput && !self.head.asks_effect
    }

    /// Whether it waits for what is to happen with an effect that was interrupted, or that an earlier session has had. Such a question of
    /// a branch stays open while other branches go on, and after the process that ran them has ended.
    pub fn awaits_effect_answer(&self) -> bool {
        let is_asked = match self.head.effect_in_branch {
            Some(_) => !self.status.is_final(),
            None => self.status == SessionStatus::WaitingInput,
        };
        self.head.asks_effect && is_asked
    }

    /// Whether a monitor or the planner has not finished, or its result was not stored.
    pub fn awaits_analysis(&self) -> bool {
        !self.mailbox.pending().is_empty() || self.head.planning.is_some()
    }

    /// Whether a kernel that ends with this session in memory has what its code left there: variables, open files, processes.
    pub fn has_kernel_memory(&self) -> bool {
        !self.program.kernel.source.is_foreign() && self.services.host.kernel.executed_cells() > 0
    }

    /// Where decisions are left while it runs: they are taken while its branches run, without waiting for all of them.
    pub fn inbox(&self) -> Arc<DecisionInbox> {
        Arc::clone(&self.inbox)
    }

    /// The number of its newest event.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The variables visible at the current position.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The current scopes, then those outside the running skills, innermost first.
    pub fn all_scopes(&self) -> impl Iterator<Item = &Scopes> {
        std::iter::once(&self.scopes).chain(self.outer.iter().rev())
    }

    /// The current location.
    pub fn place(&self) -> EventLocation {
        self.place_of(&self.frames.leaf())
    }

    /// Accepts an answer of the person. It is committed before any call is made, so that it is never lost.
    ///
    /// # Errors
    /// If the store fails; the answer was then not accepted.
    pub async fn answer(&mut self, text: &str, answer_id: Option<&str>) -> Result<TakenAnswer, RunError> {
        let taken = self.answer_with_turn(text, answer_id).await?;
        self.write_held().await?;
        Ok(taken)
    }

    /// [`Session::answer`] for a caller that calls [`Session::advance`] next, and says only then that the answer is accepted: it may be
    /// committed together with the turn that follows.
    ///
    /// # Errors
    /// As [`Session::answer`].
    pub async fn answer_with_turn(&mut self, text: &str, answer_id: Option<&str>) -> Result<TakenAnswer, RunError> {
        self.ensure_consistent()?;
        if text.len() > MAX_VALUE_BYTES {
            return Ok(TakenAnswer::TooLong);
        }
        if let Some(given) = answer_id
            && self.head.waiting.as_deref() != Some(given)
        {
            if self.is_taken(given).await? {
                self.report_ignored("answer-taken", "an answer was ignored: its answer_id has already been used")
                    .await?;
                return Ok(TakenAnswer::AlreadyUsed);
            }
            // Ids of this interpreter that were not used yet; any other id is the client's own and is ignored.
            if own_number(given).is_some() || is_effect_answer_id(given) || is_decision_id(given) {
                self.report_ignored(
                    "answer-unknown",
                    "an answer was ignored: no question has been asked yet under its answer_id",
                )
                .await?;
                return Ok(TakenAnswer::Unknown);
            }
        }
        let is_awaited = self.status == SessionStatus::WaitingInput || self.awaits_effect_answer();
        let Some(awaited) = self.head.waiting.clone().filter(|_| is_awaited) else {
            return Ok(TakenAnswer::NotAwaited);
        };
        let mut draft = CommitDraft::default();
        draft.answered.push(awaited.clone());
        draft.answer_ids.push(awaited);
        let chosen = answer_id.filter(|given| Some(*given) != self.head.waiting.as_deref()).map(str::to_owned);
        draft.answer_ids.extend(chosen.clone());
        self.head.waiting = None;
        self.head.route_hops = 0;
        self.head.recent_routes.clear();
        self.status = SessionStatus::Running;
        if std::mem::take(&mut self.head.asks_effect) {
            // An answer about an effect is no part of the conversation: no prompt, trigger or monitor sees it.
            let key = self.head.effect_in_branch.take().unwrap_or_else(|| self.frames.leaf());
            self.store_effect_answer(&key, text);
            self.commit(draft).await?;
            return Ok(TakenAnswer::Yes);
        }
        let message_id = format!("u{}", self.last_seq + 1);
        let event = Event::Message { message_id, role: Speaker::User, text: text.to_owned(), answer_id: chosen };
        draft.event(&self.place(), event);
        self.answers += 1;
        self.head.pending = true;
        self.triggers_checked = false;
        self.pending = Some(text.to_owned());
        self.commit_with_next(draft).await?;
        Ok(TakenAnswer::Yes)
    }

    /// Reports to the sender that an answer changed nothing (docs/sessions.md).
    async fn report_ignored(&mut self, code: &'static str, message: &'static str) -> Result<(), RunError> {
        let help = self.head.waiting.as_ref().map(|awaited| msg!("the expected answer is `{awaited}`"));
        let mut draft = CommitDraft::default();
        draft.event(&self.place(), Event::Warning { code, message: Message::word(message), help });
        self.commit(draft).await
    }

    /// Commits an error about a line of input that was not accepted as an answer; nothing else changes.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn report_rejected_input(
        &mut self,
        code: &'static str,
        message: Message,
        help: Option<Message>,
    ) -> Result<(), RunError> {
        self.ensure_consistent()?;
        let mut draft = CommitDraft::default();
        draft.event(&self.place(), Event::Error { code, message, help });
        self.commit(draft).await
    }

    async fn is_taken(&self, answer_id: &str) -> Result<bool, RunError> {
        if own_number(answer_id).is_some_and(|number| number <= self.answers + self.head.skipped_answer_ids) {
            return Ok(true);
        }
        if is_decision_id(answer_id) {
            let requests = self.store.requests(&self.id).await?;
            return Ok(requests.iter().any(|request| request.id == answer_id && request.answered_at.is_some()));
        }
        Ok(self.store.answer_accepted(&self.id, answer_id).await?)
    }

    /// Masks `value` in all output from now on, also after a resume and after its variable changes: prompts still contain the
    /// conversation with it.
    pub(crate) fn hide(&mut self, value: &ExactValue, draft: &mut CommitDraft) -> Result<(), serde_json::Error> {
        if !self.masker.add(value) {
            return Ok(());
        }
        self.plans.note_sensitive();
        self.head.hidden += 1;
        draft.variables.push(VariableRow {
            scope: MASKED_VALUES.to_owned(),
            path: self.head.hidden.to_string(),
            value: serde_json::to_string(value)?,
            sensitive: true,
            ..VariableRow::default()
        });
        Ok(())
    }
}

/// The number of an `answer_id` of this interpreter.
fn own_number(answer_id: &str) -> Option<u64> {
    let digits = answer_id.strip_prefix('a')?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Whether this is an `answer_id` of this interpreter for a question about an external effect: `w` and the number of an event.
fn is_effect_answer_id(answer_id: &str) -> bool {
    is_numbered(answer_id, 'w')
}

/// Whether this is the id of a request of this interpreter for a decision or a time: `r` and the number of an event.
pub(crate) fn is_decision_id(id: &str) -> bool {
    is_numbered(id, 'r')
}

fn is_numbered(id: &str, letter: char) -> bool {
    id.strip_prefix(letter).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The `answer_id` of the answer after `answers` earlier ones. No two questions have the same.
pub(crate) fn next_answer_id(head: &Head, answers: u64) -> String {
    format!("a{}", answers + head.skipped_answer_ids + 1)
}
