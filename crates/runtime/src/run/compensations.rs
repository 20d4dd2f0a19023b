//! Compensations: what undoes the actions of a session that fails or is cancelled after them, the newest first (docs/failures.md).

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::run::cleanup::LEFT_OUT;
use crate::run::compensation_records::{COMPENSATIONS, Compensation, newest};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{Frame, FrameTarget, ROOT, child, component, id_of, lineage, parent};
use crate::run::resume::{StoredState, read_state};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_store::rows::{FrameRow, VariableRow};

/// The last component of the key of the frame of a running compensation.
const COMPENSATE: &str = "=compensate";

impl Session {
    /// Records that the action `key` is completed, if it has a compensation.
    pub(crate) fn record_compensation(
        &mut self,
        program: &Program,
        key: &str,
        outcome: &Outcome,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let has_compensation = self.position(program, key).is_some_and(|position| !position.step.compensate.is_empty());
        if !has_compensation || outcome.exit_reason.is_some_and(ExitReason::fails) || self.cleanup_of(key).is_some() {
            return Ok(());
        }
        let order = self.compensations.values().map(|record| record.order).max().unwrap_or(0) + 1;
        let frames = std::iter::once(ROOT).chain(lineage(key));
        let frames = frames.filter_map(|key| Some((key.to_owned(), self.frames.get(key)?.position_only()))).collect();
        let branch_path = self.branch_path(key);
        self.put_compensation(key.to_owned(), Compensation { order, frames, branch_path, done: false }, draft)
    }

    /// The path of the variables of the innermost branch around the frame `key`, unless they are not visible in a skill inside it.
    fn branch_path(&self, key: &str) -> Option<String> {
        let mut path = None;
        for frame in lineage(key).filter_map(|key| self.frames.get(key)) {
            match (&frame.branch, &frame.at) {
                (Some(branch), _) => path = Some(branch.path.clone()),
                (None, FrameTarget::Skill(_)) => path = None,
                _ => {}
            }
        }
        path
    }

    pub(crate) fn put_compensation(
        &mut self,
        key: String,
        record: Compensation,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let value = serde_json::to_string(&record).map_err(|error| SessionFailure::new(error.to_message()))?;
        let path = key.clone();
        draft.variables.push(VariableRow { scope: COMPENSATIONS.to_owned(), path, value, ..VariableRow::default() });
        self.compensations.insert(key, record);
        Ok(())
    }

    /// Whether anything can be undone.
    pub(crate) fn has_compensations(&self) -> bool {
        newest(&self.compensations).values().any(|(_, record)| !record.done)
    }

    /// Starts the newest compensation that is not over. If there is none, the session ends.
    /// Errors: The store failed.
    pub(crate) async fn next_compensation(&mut self) -> Result<(), RunError> {
        let mut draft = CommitDraft::default();
        let wanted = self.head.ending.as_ref().is_some_and(|ending| ending.compensate);
        let open = newest(&self.compensations).into_values().filter(|(_, record)| wanted && !record.done);
        let Some((key, record)) = open.max_by_key(|(_, record)| record.order) else {
            self.finish_ending(&mut draft);
            return self.commit(draft).await;
        };
        let (key, record) = (key.to_owned(), record.clone());
        let place = EventLocation { action_id: Some(id_of(component(&key)).to_owned()), ..EventLocation::default() };
        match self.restored_position(&key, &record).await? {
            Ok((rows, state)) => {
                self.program = state.program;
                self.scopes = state.scopes;
                self.outer = state.outer;
                for (key, frame) in rows {
                    self.frames.put(key, frame);
                }
                self.walk_on(&place, &mut draft);
            }
            Err(message) => {
                draft.event(&place, Event::Error { code: "frame-unreadable", message, help: None });
                if let Some(ending) = &mut self.head.ending {
                    ending.failed.push(id_of(component(&key)).to_owned());
                }
                if let Err(error) = self.put_compensation(key, Compensation { done: true, ..record }, &mut draft) {
                    self.finish_ending(&mut draft);
                    draft.event(&place, Event::Error { code: error.code, message: error.message, help: error.help });
                }
            }
        }
        self.commit(draft).await
    }

    /// The frames of the compensation of a recorded action, with the program and the variables at their position.
    async fn restored_position(
        &mut self,
        key: &str,
        record: &Compensation,
    ) -> Result<Result<(Vec<(String, Frame)>, StoredState), Message>, RunError> {
        // There may be many compensations, so the rows are not read for each of them.
        let mut variables = match self.stored_variables.take() {
            Some(variables) => variables,
            None => self.store.variables(&self.id).await?,
        };
        // The records are in memory.
        variables.retain(|row| row.scope != COMPENSATIONS);
        let row = self.store.session(&self.id).await?.ok_or_else(|| RunError::NotFound(self.id.clone()))?;
        let user_rows = self.store.user_variables(&row.user).await?;
        let running =
            Frame { at: FrameTarget::Compensation, branch_path: record.branch_path.clone(), ..Frame::default() };
        let mut frames = record.frames.clone();
        frames.push((child(key, COMPENSATE), running));
        let rows: Result<Vec<FrameRow>, serde_json::Error> = frames
            .iter()
            .map(|(key, frame)| Ok(FrameRow { key: key.clone(), state: serde_json::to_string(frame)? }))
            .collect();
        let state = match rows {
            Ok(rows) => read_state(&self.base, &self.services, &rows, &variables, &user_rows),
            Err(error) => Err(error.to_message()),
        };
        self.stored_variables = Some(variables);
        Ok(state.map(|state| (frames, state)))
    }

    /// The compensation with the frame `key` is over.
    pub(crate) fn compensation_done(&mut self, key: &str, draft: &mut CommitDraft) -> Result<(), SessionFailure> {
        let action = parent(key).to_owned();
        let complete = self.frames.get(key).is_some_and(|frame| frame.next != LEFT_OUT);
        draft.event(&self.place_of(&action), Event::Undone { complete });
        let outside = self.script_scopes().session_scopes();
        self.unwind(ROOT);
        self.scopes = outside;
        self.outer.clear();
        match self.compensations.get(&action).cloned() {
            Some(record) => self.put_compensation(action, Compensation { done: true, ..record }, draft),
            None => Ok(()),
        }
    }
}
