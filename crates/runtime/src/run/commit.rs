//! Commits: events get their numbers, rows are written, and only then observers are notified.

use bcc_lang::message::argument::ToMessage;
use std::sync::Arc;

use crate::program::event::{Committed, Event, StampedEvent};
use crate::program::event_redaction::redact;
use crate::program::location::EventLocation;
use crate::program::recorder::Recorded;
use crate::program::transcript::TranscriptEntry;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::session::Session;
use bcc_store::rows::{Commit, CounterRow, JournalRow, MessageRow};

/// A prepared commit, with the data for observers once it is made.
pub(crate) struct PreparedCommit {
    pub(crate) commit: Commit,
    entries: Vec<TranscriptEntry>,
    /// The events of its journal rows, in their order.
    events: Vec<(Arc<EventLocation>, Event, String)>,
}

impl Session {
    /// Writes the draft with the current state, all or nothing, and notifies the observer.
    ///
    /// # Errors
    /// If the store fails. The session object must then be dropped; the stored session is intact.
    pub(crate) async fn commit(&mut self, draft: CommitDraft) -> Result<(), RunError> {
        // Until the rows are written, this state is newer than the store. If the store fails, or this future is dropped during the write,
        // it is unknown whether the commit was made, so this object must not continue.
        self.commit_pending = true;
        let prepared = self.prepare(draft)?;
        if let Err(error) = self.store.commit(&self.id, &prepared.commit).await {
            if let Some(recorder) = &self.services.recorder {
                recorder.take_back();
            }
            return Err(error.into());
        }
        self.committed(prepared);
        self.commit_pending = false;
        Ok(())
    }

    /// Rejects further use of a state that may differ from the stored one.
    pub(crate) fn ensure_consistent(&self) -> Result<(), RunError> {
        if self.commit_pending { Err(RunError::CommitInterrupted(self.id.clone())) } else { Ok(()) }
    }

    /// The rows of a draft. Its exchanges with models are recorded first, if the session is recorded.
    pub(crate) fn prepare(&mut self, mut draft: CommitDraft) -> Result<PreparedCommit, RunError> {
        let unwritable =
            |error: serde_json::Error| RunError::Unreadable { id: String::new(), what: error.to_message() };
        self.count_time();
        self.close_abandoned(&mut draft);
        let mut entries = Vec::new();
        let mut messages = Vec::new();
        let mut calls = Vec::new();
        let mut journal = Vec::with_capacity(draft.events.len());
        let mut seq = self.last_seq;
        let mut updated_at = self.services.clock.at(seq);
        let mut events = Vec::with_capacity(draft.events.len());
        for (place, mut event) in draft.events {
            seq += 1;
            let at = self.services.clock.at(seq);
            if let Event::Message { message_id, role, text, .. } = &event {
                self.head.messages += 1;
                entries.push(TranscriptEntry { speaker: *role, text: text.clone() });
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
            recorder.record(&calls, &self.masker).map_err(RunError::Recording)?;
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
            user_variables_put: draft.user_variables,
            journal,
            answer_ids: draft.answer_ids,
            requests_answered: draft.answered,
            ..commit
        };
        Ok(PreparedCommit { commit, entries, events })
    }

    /// Updates the state after the write, and notifies the observer.
    pub(crate) fn committed(&mut self, prepared: PreparedCommit) {
        let PreparedCommit { commit, entries, events } = prepared;
        self.revision += 1;
        self.last_seq += commit.journal.len() as u64;
        for entry in entries {
            self.recent.push(entry);
        }
        if let Some(job) = self.next_job.take() {
            self.mailbox.start(job);
        }
        for (row, (place, event, line)) in commit.journal.iter().zip(&events) {
            let committed = Committed { seq: row.seq, at: &row.at, place, event, line };
            self.services.observer.committed(&committed);
        }
        if let Err(reason) = self.services.observer.commit_ended() {
            self.halted = Some(reason);
        }
    }
}
