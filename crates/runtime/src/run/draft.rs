//! The content of the next commit while it is being built.

use std::sync::Arc;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::work::VariableWrite;
use bcc_lang::value::scopes::{Scope, Stored};
use bcc_store::rows::{CellRow, Commit, RequestRow, TextRow, VariableKey, VariableRow};

/// Events and rows that are not committed yet.
#[derive(Debug, Default)]
pub(crate) struct CommitDraft {
    pub events: Vec<(Arc<EventLocation>, Event)>,
    pub variables: Vec<VariableRow>,
    pub variables_removed: Vec<VariableKey>,
    pub user_variables: Vec<VariableRow>,
    pub counters: Vec<(String, u64)>,
    pub cells: Vec<CellRow>,
    pub texts: Vec<TextRow>,
    pub answer_ids: Vec<String>,
    /// Requests that are opened; the commit sets their time.
    pub requests: Vec<RequestRow>,
    /// Ids of requests that are answered.
    pub answered: Vec<String>,
    /// The rows of the earlier state that the session returns to, if it does.
    pub restored: Option<Commit>,
}

impl CommitDraft {
    /// Adds an event. Consecutive events with the same location share it.
    pub(crate) fn event(&mut self, place: &EventLocation, event: Event) {
        let place = match self.events.last() {
            Some((last, _)) if last.as_ref() == place => Arc::clone(last),
            _ => Arc::new(place.clone()),
        };
        self.events.push((place, event));
    }

    /// Whether nobody outside the session needs to see it at once.
    pub(crate) fn can_wait(&self) -> bool {
        let Self { user_variables, texts, requests, .. } = self;
        self.joins_others() && user_variables.is_empty() && texts.is_empty() && requests.is_empty()
    }

    /// Whether it can be written together with commits before it: it changes nothing that only the store knows.
    pub(crate) fn joins_others(&self) -> bool {
        self.restored.is_none()
    }

    /// Adds an event before the one that reports the end of the session, if the draft has one.
    pub(crate) fn event_before_end(&mut self, place: &EventLocation, event: Event) {
        let is_end = |event: &Event| {
            matches!(
                event,
                Event::SessionCompleted { .. }
                    | Event::SessionFailed { .. }
                    | Event::SessionStopped { .. }
                    | Event::SessionCancelled { .. }
            )
        };
        let end = self.events.iter().position(|(_, event)| is_end(event)).unwrap_or(self.events.len());
        self.events.insert(end, (Arc::new(place.clone()), event));
    }

    pub(crate) fn write(&mut self, write: &VariableWrite) -> Result<(), serde_json::Error> {
        self.variable(write.written.scope, &write.written.path, &write.name, &write.stored, write.written.sensitive)
    }

    pub(crate) fn variable(
        &mut self,
        scope: Scope,
        path: &str,
        name: &str,
        stored: &Stored,
        sensitive: bool,
    ) -> Result<(), serde_json::Error> {
        let row = VariableRow {
            scope: scope.name().to_owned(),
            path: path.to_owned(),
            name: name.to_owned(),
            value: serde_json::to_string(&stored.value)?,
            source: stored.source.clone(),
            round: stored.round,
            at: stored.at.clone(),
            sensitive,
        };
        if scope == Scope::Global {
            self.user_variables.push(row)
        } else {
            self.variables.push(row)
        }
        Ok(())
    }
}
