//! The turns of the actions whose requests were decided, and no others: what a session still does before another one replaces it
//! (docs/workflows.md).

use std::collections::BTreeSet;

use crate::run::error::RunError;
use crate::run::frames::is_below;
use crate::run::head::SessionStatus;
use crate::run::session::Session;

impl Session {
    /// Runs the actions whose requests were answered until they end or wait again. Nothing else runs, also in other branches, unless
    /// the session is about to end because of what was decided.
    ///
    /// # Errors
    /// As [`Session::advance`].
    pub async fn take_decided_turns(&mut self) -> Result<(), RunError> {
        self.decided_only = Some(self.frames.decided().map(str::to_owned).collect());
        let taken = self.run_decided().await;
        self.decided_only = None;
        if self.ensure_consistent().is_ok() {
            self.write_held().await?;
        }
        taken
    }

    /// Whether the session has ended, or only undoes and ends what it did before.
    pub fn is_ending(&self) -> bool {
        self.status.is_final() || self.head.ending.is_some()
    }

    async fn run_decided(&mut self) -> Result<(), RunError> {
        while self.status == SessionStatus::Running && self.head.ending.is_none() {
            if let Some(reason) = self.halted.take() {
                return Err(RunError::Halted(reason));
            }
            let key = self.frames.leaf();
            let has_branches = self.frames.get(&key).is_some_and(|frame| frame.branches.is_some());
            let Some(decided) = self.decided_only.as_mut() else { break };
            let is_decided = decided.contains(&key) || has_branches && decided.iter().any(|own| is_below(own, &key));
            if !is_decided {
                break;
            }
            // If its branches are joined then, the action ends in its next turn.
            decided.insert(key.clone());
            self.one_turn().await?;
            if has_branches && self.frames.get(&key).is_some_and(|frame| frame.branches.is_some()) {
                break;
            }
        }
        Ok(())
    }

    /// Whether the action `key` must not have a turn now, because only decided actions may take turns.
    pub(crate) fn is_held_back(&self, key: &str) -> bool {
        self.decided_only.as_ref().is_some_and(|decided: &BTreeSet<String>| !decided.contains(key))
    }
}
