//! The global variables of a user, whose other sessions may have changed them while this one rested.

use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::ScopeLayer;
use bcc_store::rows::VariableRow;

use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::resume::user_layer;
use crate::run::session::Session;

impl Session {
    /// Takes over what other sessions of the user have stored since this one read it. A turn sees the values as they were when it began; of
    /// two sessions that set the same variable, the one that commits last counts.
    ///
    /// # Errors
    /// The store failed, or a value in it cannot be read.
    pub(crate) async fn refresh_globals(&mut self) -> Result<(), RunError> {
        let program = Arc::clone(&self.program);
        if program.globals.is_empty() || self.services.keeps_globals {
            return Ok(());
        }
        let rows = self.store.user_variables(self.plans.user()).await?;
        let unreadable = |what| RunError::Unreadable { id: self.id.clone(), what };
        let stored = user_layer(&program, &rows).map_err(unreadable)?;
        if !self.take_over(&stored) {
            return Ok(());
        }
        let mut draft = CommitDraft::default();
        let is_sensitive = |row: &&VariableRow| {
            row.sensitive || program.globals.get(&row.name).is_some_and(|declaration| declaration.sensitive)
        };
        for row in rows.iter().filter(is_sensitive) {
            let unwritable = |error: serde_json::Error| RunError::Unreadable {
                id: self.id.clone(),
                what: msg!("the variable `{name}`: {error}", name = row.name),
            };
            let value = ExactValue::parse(&row.value).map_err(unwritable)?;
            let id = self.id.clone();
            self.hide(&value, &mut draft).map_err(|error| RunError::Unreadable {
                id,
                what: msg!("the variable `{name}`: {error}", name = row.name),
            })?;
        }
        // Its prompts will contain the new values, so they stay masked also when the variables change again.
        if draft.variables.is_empty() { Ok(()) } else { self.commit(draft).await }
    }

    /// Puts the values into all scopes of the session. Returns whether any of them is new.
    fn take_over(&mut self, stored: &ScopeLayer) -> bool {
        let branches =
            self.branches.values_mut().flat_map(|branch| std::iter::once(&mut branch.scopes).chain(&mut branch.outer));
        let all = std::iter::once(&mut self.scopes).chain(&mut self.outer).chain(branches);
        all.fold(false, |is_new, scopes| scopes.refresh_globals(stored) | is_new)
    }
}
