//! The variables of branches: each branch writes to a layer of its own, which is merged when all branches of an action have ended.

use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::stored::StoredMessage;
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::Scopes;
use serde_json::{Map, Value};

use crate::program::event::Event;
use crate::program::flow::BranchBlock;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::work::VariableWrite;
use crate::run::branch_state::{BranchEnd, BranchRules, BranchState};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::branch_key;
use crate::run::session::Session;

impl Session {
    /// All branches of an action have ended: their variables are merged in their order, and the action finds in its next turn how they
    /// ended.
    pub(crate) fn join_branches(
        &mut self,
        action: &str,
        rules: &BranchRules,
        draft: &mut CommitDraft,
    ) -> Result<(), RunError> {
        let mut ends = Map::new();
        let mut outcome = Outcome::done(ExitReason::ExitCriteriaMet);
        let outer = self.enclosing_branch(action);
        for branch in &rules.branches {
            let key = branch_key(action, branch);
            let Some(state) = self.branch(&key).cloned() else { continue };
            if let Some(own) = self.branches.remove(&key) {
                let merged =
                    self.in_branch(outer.as_deref(), |session| session.merge(action, &own.scopes, &state, draft));
                merged.map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() })?;
            }
            self.remove_action(&key);
            let mut end = Map::from_iter([("end".to_owned(), state.end.map(BranchEnd::name).into())]);
            if let Some(error) = state.error {
                end.insert("error_message".into(), error.to_string().into());
                let pointer = format!("/metadata/branches/{}/error_message", branch.id);
                outcome.messages.insert(pointer, StoredMessage(error));
            }
            ends.insert(branch.id.clone(), end.into());
        }
        outcome.metadata.insert("branches".into(), ends.into());
        self.frames.set_branches(action, None);
        if let Some(frame) = self.frames.change(action) {
            frame.last = Some(Box::new(outcome));
        }
        Ok(())
    }

    /// Writes what a branch set to the scopes outside of it.
    fn merge(
        &mut self,
        action: &str,
        own: &Scopes,
        state: &BranchState,
        draft: &mut CommitDraft,
    ) -> Result<(), serde_json::Error> {
        let Some(layer) = own.narrowest().filter(|layer| layer.path == state.path).map(Arc::clone) else {
            return Ok(());
        };
        let place = self.place_of(action);
        let mut names: Vec<_> = layer.values().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        for (name, stored) in names {
            let scope = state.scopes.get(name).copied();
            let written = self.scopes.write(name, stored.clone(), scope);
            let Some(written) = written.or_else(|| self.scopes.write(name, stored.clone(), None)) else { continue };
            let value = if written.sensitive { Value::from(MASK).into() } else { stored.value.clone() };
            let (name, source) = (name.to_owned(), stored.source.clone());
            let event = Event::VariableSet { name: name.clone(), scope: written.scope.name(), value, source };
            draft.event(&place, event);
            let write = VariableWrite { name, written, stored: stored.clone(), scope };
            draft.write(&write)?;
            self.keep_named_scopes(std::slice::from_ref(&write));
            self.pass_bound_plan(std::slice::from_ref(&write), draft)?;
        }
        Ok(())
    }

    /// Keeps the scopes that the author named for what is written in the branch that the session works in.
    pub(crate) fn keep_named_scopes(&mut self, writes: &[VariableWrite]) {
        let Some(branch) = self.frames.focus().map(str::to_owned) else { return };
        let Some(path) = self.branch(&branch).map(|state| state.path.clone()) else { return };
        for write in writes.iter().filter(|write| write.written.path == path) {
            if let (Some(scope), Some(state)) = (write.scope, self.change_branch(&branch)) {
                state.scopes.insert(write.name.clone(), scope);
            }
        }
    }

    /// Works in a branch, for as long as `work` lasts; without a branch, where the session is.
    pub(crate) fn in_branch<R>(&mut self, branch: Option<&str>, work: impl FnOnce(&mut Self) -> R) -> R {
        let Some(branch) = branch else { return work(self) };
        let before = self.frames.set_focus(Some(branch.to_owned()));
        self.exchange_scopes(branch);
        let result = work(self);
        self.exchange_scopes(branch);
        self.frames.set_focus(before);
        result
    }

    fn exchange_scopes(&mut self, branch: &str) {
        let own = self.branches.entry(branch.to_owned()).or_default();
        std::mem::swap(&mut self.scopes, &mut own.scopes);
        std::mem::swap(&mut self.outer, &mut own.outer);
    }

    /// The layers of the branches that come before this one, which sees what they set.
    pub(crate) fn layers_before(&self, action: &str, rules: &BranchRules, branch: &BranchBlock) -> Scopes {
        let keys = rules.before(branch).into_iter().map(|before| branch_key(action, before));
        let layers = keys.filter_map(|key| self.branches.get(&key)?.scopes.narrowest().map(Arc::clone));
        let mut seen = Scopes::default();
        layers.for_each(|layer| seen.push_shared(layer));
        seen
    }
}
