//! Takes the last answer back: the session returns to the state before it, from what the store keeps, without a model
//! (docs/sessions.md).

use std::collections::{BTreeMap, BTreeSet};

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::Deserialize;

use crate::plan::task::PlanId;
use crate::program::decision::RequestKind;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::transcript::RecentTranscript;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::Frames;
use crate::run::head::{Head, SessionStatus};
use crate::run::mailbox::Mailbox;
use crate::run::planner::Planner;
use crate::run::resume::{StoredState, branch_requests, read_state, recent, waiting_of};
use crate::run::session::{MASKED_VALUES, Session};
use bcc_lang::value::scopes::Scope;
use bcc_store::contract::Store;
use bcc_store::rows::{Commit, EarlierState, FrameRow, RequestRow, VariableRow};

/// The result of taking an answer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// The session waits again for another answer to the same question.
    Yes,
    /// No answer was given yet, or all were taken back; nothing changed.
    NoAnswer,
    /// The answer was given before the store kept what is needed for this; nothing changed.
    NotKept,
    /// Somebody decided about an approval since then; nothing changed.
    Decided,
    /// The session is over; nothing changed.
    Final,
}

/// The number of journal rows that are read at a time.
const PAGE: usize = 64;

/// An event `request_answered`.
#[derive(Deserialize)]
struct AnsweredRequest {
    kind: String,
}

/// Whether the answer to a request was that its time had come.
fn is_end_of_wait(body: &str) -> bool {
    let answered = serde_json::from_str::<AnsweredRequest>(body);
    answered.is_ok_and(|answered| answered.kind == RequestKind::Time.name())
}

/// The question whose answer a session has followed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredQuestion {
    pub answer_id: Option<String>,
    /// The number of answers before it.
    pub answers: u64,
}

/// The question whose answer [`Session::take_back`] would take back, if it can take one back.
///
/// # Errors
/// If the store fails, or what it keeps cannot be read.
pub async fn answered_question(store: &dyn Store, id: &str) -> Result<Option<AnsweredQuestion>, RunError> {
    let Some(row) = store.session(id).await? else { return Ok(None) };
    let head = |text: &str| {
        serde_json::from_str::<Head>(text)
            .map_err(|error| RunError::Unreadable { id: id.to_owned(), what: msg!("head: {error}") })
    };
    let is_over = SessionStatus::parse(&row.status).is_none_or(SessionStatus::is_final);
    let Some(answers) = row.answers.checked_sub(1).filter(|_| !is_over) else { return Ok(None) };
    if head(&row.head)?.ending.is_some() {
        return Ok(None);
    }
    match state_before(store, id, answers).await? {
        Some(earlier) if !was_decided_after(store, id, earlier.last_seq).await? => {
            Ok(Some(AnsweredQuestion { answer_id: head(&earlier.head)?.waiting, answers }))
        }
        _ => Ok(None),
    }
}

/// The state in which a session waited for the answer with this number, if the store has kept it.
async fn state_before(store: &dyn Store, id: &str, answers: u64) -> Result<Option<EarlierState>, RunError> {
    match store.revision_with(id, SessionStatus::WaitingInput.name(), answers).await? {
        Some(revision) => Ok(store.earlier_state(id, revision).await?),
        None => Ok(None),
    }
}

/// Whether somebody, or the end of the time for it, decided about something after this event. The end of a `wait` is no decision.
async fn was_decided_after(store: &dyn Store, id: &str, seq: u64) -> Result<bool, RunError> {
    let mut after = seq;
    loop {
        let rows = store.journal_by_kind(id, "request_answered", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(false) };
        after = last.seq;
        if !rows.iter().all(|row| is_end_of_wait(&row.body)) {
            return Ok(true);
        }
    }
}

/// What stays of the turns that are taken back.
#[derive(Debug, Default)]
struct Remains {
    effects: u64,
    globals: BTreeSet<String>,
    plans: BTreeSet<PlanId>,
}

impl Session {
    /// Takes the last answer back, with everything that followed from it: the session waits again for an answer to the same question,
    /// which gets a new `answer_id`. The journal, effects outside the session, the variables of the user, and what was used of the
    /// budget and what was changed in plans stay. No model is called, except by monitors that had not finished at that time.
    ///
    /// # Errors
    /// If the store fails, or what it keeps cannot be read. The session object must then be dropped if the commit failed; the stored
    /// session is intact.
    pub async fn take_back(&mut self) -> Result<TakenBack, RunError> {
        self.ensure_consistent()?;
        // What runs before the end undoes what was done; it cannot be undone itself.
        if self.status.is_final() || self.head.ending.is_some() {
            return Ok(TakenBack::Final);
        }
        let Some(answers) = self.answers.checked_sub(1) else { return Ok(TakenBack::NoAnswer) };
        // Results that are available were paid for and belong to the history.
        self.commit_results().await?;
        let Some(earlier) = state_before(self.store.as_ref(), &self.id, answers).await? else {
            return Ok(TakenBack::NotKept);
        };
        // A decision may be that of somebody else.
        if was_decided_after(self.store.as_ref(), &self.id, earlier.last_seq).await? {
            return Ok(TakenBack::Decided);
        }
        let unreadable = |what: Message| RunError::Unreadable { id: self.id.clone(), what };
        let mut head: Head = serde_json::from_str(&earlier.head).map_err(|error| unreadable(msg!("head: {error}")))?;
        let (prompt, place) = self.question_at(earlier.last_seq).await?;
        let remains = self.remains_after(earlier.last_seq).await?;
        let row = self.store.session(&self.id).await?.ok_or_else(|| RunError::NotFound(self.id.clone()))?;
        let user_rows = self.store.user_variables(&row.user).await?;
        let frames = restored_frames(self.store.frames(&self.id).await?, &earlier.changes);
        let variables = restored_variables(self.store.variables(&self.id).await?, &earlier.changes);
        let state = read_state(&self.base, &self.services, &frames, &variables, &user_rows).map_err(unreadable)?;
        let requests = branch_requests(self.store.as_ref(), &self.id, &state.frames).await?;
        let mut counters: BTreeMap<String, u64> =
            self.store.counters(&self.id).await?.into_iter().map(|row| (row.name, row.count)).collect();
        counters.retain(|name, _| !earlier.changes.counters_removed.contains(name));
        counters.extend(earlier.changes.counters_put.iter().map(|row| (row.name.clone(), row.count)));
        let recent = recent(self.store.as_ref(), &self.id, &self.base, head.messages).await?;
        self.carry_over(&mut head);
        // Nothing is awaited between here and the commit.
        let from_seq = earlier.last_seq + 1;
        let mut draft = CommitDraft::default();
        let taken = Event::TakenBack {
            from_seq,
            to_seq: self.last_seq,
            answers,
            effects: remains.effects,
            globals: remains.globals.into_iter().collect(),
            plans: remains.plans.into_iter().collect(),
        };
        draft.event(&place, taken);
        self.close_taken_back(&state.frames, &place, &mut draft);
        self.become_earlier(state, head, requests, recent);
        self.answers = answers;
        self.counters = counters;
        self.request = None;
        self.wait_for_answer(prompt, &place, &mut draft);
        for request in &mut self.head.monitors {
            request.restarted_at = Some(self.last_seq);
        }
        self.restart_analyses(&variables);
        self.restart_plan();
        draft.restored = Some(changes_to_write(earlier));
        self.commit(draft).await?;
        Ok(TakenBack::Yes)
    }

    /// The prompt and the location of the question that the session waited on at this event.
    async fn question_at(&self, last_seq: u64) -> Result<(String, EventLocation), RunError> {
        let unreadable =
            |error: serde_json::Error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() };
        let mut before = last_seq.saturating_add(1);
        // The question is among the last events; only results of monitors can follow it.
        loop {
            let after = before.saturating_sub(PAGE as u64 + 1);
            let rows = self.store.journal_by_kind(&self.id, "waiting", after, PAGE).await?;
            let row = rows.iter().rev().find(|row| row.seq <= last_seq);
            if let Some(row) = row {
                let (place, prompt) = waiting_of(&row.body).map_err(unreadable)?;
                return Ok((prompt, place));
            }
            if after == 0 {
                let what = Message::word("it has no question that it waited on");
                return Err(RunError::Unreadable { id: self.id.clone(), what });
            }
            before = after.saturating_add(1);
        }
    }

    /// What the events after `seq` did that is not undone.
    async fn remains_after(&self, seq: u64) -> Result<Remains, RunError> {
        #[derive(Deserialize)]
        struct VariableSet {
            name: String,
            scope: String,
        }
        #[derive(Deserialize)]
        struct PlanChanged {
            plan_id: PlanId,
        }
        let unreadable =
            |error: serde_json::Error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() };
        let mut remains = Remains::default();
        for kind in ["effect_started", "variable_set", "plan_changed"] {
            let mut after = seq;
            loop {
                let rows = self.store.journal_by_kind(&self.id, kind, after, PAGE).await?;
                let Some(last) = rows.last() else { break };
                after = last.seq;
                if kind == "effect_started" {
                    remains.effects += rows.len() as u64;
                    continue;
                }
                if kind == "plan_changed" {
                    for row in &rows {
                        let changed: PlanChanged = serde_json::from_str(&row.body).map_err(unreadable)?;
                        remains.plans.insert(changed.plan_id);
                    }
                    continue;
                }
                for row in &rows {
                    let set: VariableSet = serde_json::from_str(&row.body).map_err(unreadable)?;
                    // Those that it keeps to itself are taken back.
                    if set.scope == Scope::Global.name() && !self.services.keeps_globals {
                        remains.globals.insert(set.name);
                    }
                }
            }
        }
        Ok(remains)
    }

    /// What an earlier head must not forget: what was used, the limits, the masked values, and the ids of questions.
    fn carry_over(&self, head: &mut Head) {
        let now = &self.head;
        head.turns = now.turns;
        head.model_calls = now.model_calls;
        head.tokens_in = now.tokens_in;
        head.tokens_out = now.tokens_out;
        head.ms = now.ms;
        head.budget = now.budget;
        head.hidden = now.hidden;
        // The answer, and the question after it, have used two ids. A client may still send an answer with one of them.
        head.skipped_answer_ids = now.skipped_answer_ids + 2;
    }

    /// Closes, in the history, the effects that are open now and were not open at the earlier state.
    fn close_taken_back(&mut self, earlier: &Frames, place: &EventLocation, draft: &mut CommitDraft) {
        let open_before: BTreeSet<String> = earlier.open_effects().map(|effect| effect.id.clone()).collect();
        for effect in self.frames.take_open() {
            if !open_before.contains(&effect.id) {
                draft.event(place, self.abandoned_effect(effect));
            }
        }
    }

    fn become_earlier(
        &mut self,
        state: StoredState,
        head: Head,
        branch_requests: BTreeMap<String, RequestRow>,
        recent: RecentTranscript,
    ) {
        let StoredState { program, frames, scopes, outer, branches, notebook, compensations } = state;
        self.program = program;
        self.frames = frames;
        self.scopes = scopes;
        self.outer = outer;
        self.compensations = compensations;
        self.branches = branches;
        self.branch_requests = branch_requests;
        self.notebook = notebook;
        self.cells.outline.forget();
        self.head = head;
        self.recent = recent;
        self.changed_counters.clear();
        self.stored_variables = None;
        self.pending = None;
        self.triggers_checked = false;
        self.metadata = serde_json::Map::new();
        self.next_job = None;
        self.deferred = (vec![], None);
        // Dropping these ends the analyses and the plan of turns that are taken back.
        self.mailbox = Mailbox::default();
        self.planner = Planner::default();
        self.status = SessionStatus::WaitingInput;
    }
}

/// The rows of the earlier state to write. Masked values stay masked, and requests that were answered stay answered: the question
/// is asked again as a new one.
fn changes_to_write(earlier: EarlierState) -> Commit {
    let mut changes = earlier.changes;
    changes.variables_put.retain(|row| row.scope != MASKED_VALUES);
    changes.variables_removed.retain(|key| key.scope != MASKED_VALUES);
    changes.requests_put.clear();
    changes
}

pub(crate) fn restored_frames(mut rows: Vec<FrameRow>, changes: &Commit) -> Vec<FrameRow> {
    rows.retain(|row| {
        !changes.frames_removed.contains(&row.key) && !changes.frames_put.iter().any(|put| put.key == row.key)
    });
    rows.extend(changes.frames_put.iter().cloned());
    rows
}

pub(crate) fn restored_variables(mut rows: Vec<VariableRow>, changes: &Commit) -> Vec<VariableRow> {
    let is_same = |row: &VariableRow, scope: &str, path: &str, name: &str| {
        row.scope == scope && row.path == path && row.name == name
    };
    rows.retain(|row| {
        let is_put = changes.variables_put.iter().any(|put| is_same(row, &put.scope, &put.path, &put.name));
        let is_removed = changes.variables_removed.iter().any(|key| is_same(row, &key.scope, &key.path, &key.name));
        !is_put && !is_removed
    });
    rows.extend(changes.variables_put.iter().cloned());
    rows
}
