//! Commits: events get their numbers, rows are written, and only then observers are notified.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use crate::program::event::{Committed, Event, StampedEvent};
use crate::program::event_redaction::redact;
use crate::program::location::EventLocation;
use crate::program::recorder::{Recorded, RecordedRange};
use crate::program::transcript::TranscriptEntry;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::head::SessionStatus;
use crate::run::held_commits::PreparedCommit;
use crate::run::position::Position;
use crate::run::session::Session;
use crate::run::take_back::restored_variables;
use bcc_store::rows::{Commit, CounterRow, JournalRow, MessageRow};

/// The maximum number of commits that wait for each other.
const MAX_HELD: usize = 16;

impl Session {
    /// Writes the draft with the current state, all or nothing, and notifies the observer.
    ///
    /// # Errors
    /// If the store fails. The session object must then be dropped; the stored session is intact.
    pub(crate) async fn commit(&mut self, draft: CommitDraft) -> Result<(), RunError> {
        self.commit_or_hold(draft, false).await
    }

    /// Commits the draft, or leaves it to the next commit of the same process, which follows at once unless the next turn has to wait for
    /// something ([`Session::while_writing`]): turns that take microseconds are written together.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub(crate) async fn commit_with_next(&mut self, draft: CommitDraft) -> Result<(), RunError> {
        let can_wait =
            self.status == SessionStatus::Running && self.next_job.is_none() && self.held.waiting().len() < MAX_HELD;
        let observer = &self.services.observer;
        let can_wait = can_wait && (observer.can_wait() || (!observer.can_halt() && self.next_turn_announces()));
        self.commit_or_hold(draft, can_wait).await
    }

    /// Whether the next turn is the first one of an action that only announces what it does: neither waits for anything nor sends
    /// anything to an observer before it is committed.
    fn next_turn_announces(&self) -> bool {
        // These are read from the store before the turn.
        if !self.program.globals.is_empty() {
            return false;
        }
        let key = self.frames.leaf();
        let Some(frame) = self.frames.get(&key) else { return false };
        let is_new = frame.effect.is_none() && frame.branches.is_none() && frame.state.is_null();
        let announces = |position: Position<'_>| position.step.action.announces_effects();
        is_new && self.position(&self.program, &key).is_some_and(announces)
    }

    /// Commits the draft of a session that was resumed and waits, or leaves it to the commit of what happens first: a session that is only
    /// looked at is not written.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub(crate) async fn commit_with_first(&mut self, draft: CommitDraft) -> Result<(), RunError> {
        let can_wait = self.services.observer.can_wait();
        self.commit_or_hold(draft, can_wait).await
    }

    async fn commit_or_hold(&mut self, draft: CommitDraft, can_wait: bool) -> Result<(), RunError> {
        // A store writes only such commits together for which it need not look at what it has after each of them.
        let answers = |held: &PreparedCommit| !held.commit.requests_answered.is_empty();
        if !draft.joins_others() || (!draft.answered.is_empty() && self.held.waiting().iter().any(answers)) {
            self.halted = self.write_waiting().await?.or(self.halted.take());
        }
        let can_wait = can_wait && draft.can_wait() && self.services.recorder.is_none();
        let prepared = self.prepare(draft)?;
        self.hold(prepared);
        if !can_wait {
            return self.write_held().await;
        }
        self.held.is_open.store(false, Ordering::Release);
        Ok(())
    }

    /// Writes what is held, and starts the analysis that waits for it.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub(crate) async fn write_held(&mut self) -> Result<(), RunError> {
        if let Some(reason) = self.write_waiting().await? {
            self.halted = Some(reason);
        }
        if let Some(job) = self.next_job.take() {
            self.mailbox.start(job);
        }
        Ok(())
    }

    /// The result of a turn. What is held is written when the turn waits for something for the first time. Also returns why an observer
    /// lets the session take no other turn.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub(crate) async fn while_writing<T>(
        &self,
        turn: impl Future<Output = T>,
    ) -> Result<(T, Option<Message>), RunError> {
        let mut turn = pin!(turn);
        if !self.held.waiting().is_empty() {
            let first = poll_fn(|context| Poll::Ready(turn.as_mut().poll(context))).await;
            if let Poll::Ready(result) = first {
                return Ok((result, None));
            }
        }
        let halted = self.write_waiting().await?;
        Ok((turn.await, halted))
    }

    /// Writes what is held, and notifies the observer. Returns why the observer lets the session take no other turn.
    pub(crate) async fn write_waiting(&self) -> Result<Option<Message>, RunError> {
        let held = std::mem::take(&mut *self.held.waiting());
        if held.is_empty() {
            return Ok(None);
        }
        // If the store fails, or this future is dropped during the write, it is unknown whether the commits were made.
        self.held.is_open.store(true, Ordering::Release);
        let first = held.iter().find_map(|held| held.commit.journal.first()).map_or(0, |event| event.seq);
        self.held.written_from.store(first, Ordering::Release);
        let (commits, events): (Vec<_>, Vec<_>) = held.into_iter().map(|held| (held.commit, held.events)).unzip();
        let commits = Arc::new(commits);
        let written = match commits.as_slice() {
            [commit] => self.store.commit(&self.id, commit).await,
            _ => self.store.commit_all(&self.id, &commits).await,
        };
        if let Err(error) = written {
            if let Some(recorder) = &self.services.recorder {
                recorder.take_back();
            }
            return Err(error.into());
        }
        self.held.written_from.store(0, Ordering::Release);
        let mut halted = None;
        for (commit, events) in commits.iter().zip(&events) {
            self.cells.outline.committed(&commit.cells_put);
            halted = self.notify(commit, events).or(halted);
        }
        self.held.is_open.store(false, Ordering::Release);
        Ok(halted)
    }

    /// Whether a commit is being prepared or written. If a future of the session is dropped then, nobody knows whether it was made.
    pub fn writing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.held.is_open)
    }

    /// The number of the newest event that is certain to be stored.
    pub fn stored_seq(&self) -> u64 {
        let first = match self.held.written_from.load(Ordering::Acquire) {
            0 => self.held.waiting().iter().find_map(|held| held.commit.journal.first()).map(|event| event.seq),
            first => Some(first),
        };
        first.map_or(self.last_seq, |first| first.saturating_sub(1))
    }

    /// Rejects further use of a state that may differ from the stored one.
    pub(crate) fn ensure_consistent(&self) -> Result<(), RunError> {
        if self.held.is_open.load(Ordering::Acquire) {
            Err(RunError::CommitInterrupted(self.id.clone()))
        } else {
            Ok(())
        }
    }

    /// The rows of a draft. Its exchanges with models are recorded first, if the session is recorded.
    pub(crate) fn prepare(&mut self, mut draft: CommitDraft) -> Result<PreparedCommit, RunError> {
        // Until the rows are written or held, this state is newer than the store.
        self.held.is_open.store(true, Ordering::Release);
        let unwritable =
            |error: serde_json::Error| RunError::Unreadable { id: String::new(), what: error.to_message() };
        self.count_time();
        self.close_abandoned(&mut draft);
        let mut messages = Vec::new();
        let mut calls = Vec::new();
        let mut taken_back = None;
        let mut journal = Vec::with_capacity(draft.events.len());
        let mut seq = self.last_seq;
        let mut updated_at = self.services.clock.at(seq);
        let mut events = Vec::with_capacity(draft.events.len());
        for (place, mut event) in draft.events {
            seq += 1;
            let at = self.services.clock.at(seq);
            if let Event::Message { message_id, role, text, .. } = &event {
                self.head.messages += 1;
                let action_id = place.action_id.as_deref().unwrap_or_default();
                self.recent.push_of(action_id, TranscriptEntry { speaker: *role, text: text.clone() });
                messages.push(MessageRow {
                    number: self.head.messages,
                    role: role.name().to_owned(),
                    text: text.clone(),
                    at: at.clone(),
                    action_id: place.action_id.clone().unwrap_or_default(),
                    round: place.round.unwrap_or(0),
                    message_id: message_id.clone(),
                });
            }
            if let Event::ModelCall(call) = &event
                && call.exchange.is_some()
            {
                calls.push(Recorded { seq, at: at.clone(), place: Arc::clone(&place), call: call.clone() });
            }
            if let Event::TakenBack { from_seq, to_seq, .. } = &event {
                taken_back = Some(RecordedRange { from_seq: *from_seq, to_seq: *to_seq });
            }
            if !self.masker.is_empty() {
                redact(&mut event, &self.masker);
            }
            let messages = event.take_messages();
            let stamped = StampedEvent { seq, at: &at, session_id: &self.id, event: &event, location: &place };
            let line = serde_json::to_string(&stamped).map_err(unwritable)?;
            let body = event.stored(&line, messages).map_err(unwritable)?;
            updated_at.clone_from(&at);
            journal.push(JournalRow { seq, at, kind: event.kind().to_owned(), body });
            events.push((place, event, line));
        }
        if let Some(recorder) = &self.services.recorder {
            recorder.record(&calls, taken_back, &self.masker).map_err(RunError::Recording)?;
        }
        self.head.monitors = self.mailbox.pending();
        self.head.monitors.extend(self.next_job.as_ref().map(|job| job.request.clone()));
        self.head.monitors.extend(self.deferred.0.iter().cloned());
        self.head.planning = self.planner.pending().or_else(|| self.deferred.1.clone());
        let (frames_put, frames_removed) = self.frames.take_changes().map_err(unwritable)?;
        for request in &mut draft.requests {
            request.opened_at.clone_from(&updated_at);
        }
        let mut commit = draft.restored.unwrap_or_default();
        // The frames changed since the state was restored.
        commit.frames_put.retain(|row| !frames_put.iter().any(|put| put.key == row.key));
        commit.frames_put.extend(frames_put);
        commit.frames_removed.extend(frames_removed);
        commit.variables_put.extend(draft.variables);
        let (own_globals, user_variables_put) = match self.services.keeps_globals {
            true => (draft.user_variables, vec![]),
            false => (vec![], draft.user_variables),
        };
        commit.variables_put.extend(own_globals);
        commit.variables_removed.extend(draft.variables_removed);
        commit.counters_put.extend(
            std::mem::take(&mut self.changed_counters)
                .into_iter()
                .chain(draft.counters)
                .map(|(name, count)| CounterRow { name, count }),
        );
        commit.messages.extend(messages);
        commit.cells_put.extend(draft.cells);
        commit.texts.extend(draft.texts);
        commit.requests_put.extend(draft.requests);
        let commit = Commit {
            revision: self.revision,
            status: self.status.name().to_owned(),
            updated_at,
            location: serde_json::to_string(&self.place()).map_err(unwritable)?,
            head: serde_json::to_string(&self.head).map_err(unwritable)?,
            answers: self.answers,
            user_variables_put,
            journal,
            answer_ids: draft.answer_ids,
            requests_answered: draft.answered,
            ..commit
        };
        self.stored_variables = self.stored_variables.take().map(|rows| restored_variables(rows, &commit));
        Ok(PreparedCommit { commit, events })
    }

    /// Counts a commit as made: what follows continues its numbers.
    fn hold(&mut self, prepared: PreparedCommit) {
        self.revision += 1;
        self.last_seq += prepared.commit.journal.len() as u64;
        self.held.waiting().push(prepared);
    }

    /// Updates the state after the first commit was written with the session itself, and notifies the observer.
    pub(crate) fn created(&mut self, prepared: &PreparedCommit) {
        self.revision += 1;
        self.last_seq += prepared.commit.journal.len() as u64;
        self.halted = self.notify(&prepared.commit, &prepared.events);
        self.held.is_open.store(false, Ordering::Release);
    }

    /// Tells the observer what was committed. Returns why it lets the session take no other turn.
    fn notify(&self, commit: &Commit, events: &[(Arc<EventLocation>, Event, String)]) -> Option<Message> {
        for (row, (place, event, line)) in commit.journal.iter().zip(events) {
            let committed = Committed { seq: row.seq, at: &row.at, place, event, line };
            self.services.observer.committed(&committed);
        }
        self.services.observer.commit_ended().err()
    }
}
