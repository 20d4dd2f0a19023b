//! The plan that a session works on, in skills: a skill has variables of its own, but the plan is that of the session (docs/plans.md).

use bcc_lang::value::scopes::{Scope, ScopeLayer};

use crate::program::turn::BOUND_PLAN;
use crate::program::work::VariableWrite;
use crate::run::draft::CommitDraft;
use crate::run::session::Session;

impl Session {
    /// A skill begins with the plan that the session works on.
    pub(crate) fn give_bound_plan(
        &self,
        skill: &mut ScopeLayer,
        draft: &mut CommitDraft,
    ) -> Result<(), serde_json::Error> {
        let Some(bound) = self.scopes.get(BOUND_PLAN).cloned() else { return Ok(()) };
        draft.variable(Scope::Topic, &skill.path, BOUND_PLAN, &bound, false)?;
        skill.put(BOUND_PLAN, bound);
        Ok(())
    }

    /// The plan that is bound in a skill is bound around it as well, however the skill ends.
    pub(crate) fn pass_bound_plan(
        &mut self,
        writes: &[VariableWrite],
        draft: &mut CommitDraft,
    ) -> Result<(), serde_json::Error> {
        let Some(bound) = writes.iter().rev().find(|write| write.name == BOUND_PLAN) else { return Ok(()) };
        for scopes in &mut self.outer {
            if let Some(written) = scopes.write(BOUND_PLAN, bound.stored.clone(), None) {
                draft.write(&VariableWrite { written, scope: None, ..bound.clone() })?;
            }
        }
        Ok(())
    }
}
