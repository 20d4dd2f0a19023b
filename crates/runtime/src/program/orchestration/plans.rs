//! The plans of one visit of a topic: what its frame keeps, and how its actions are put together again from the script.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::error;

use crate::program::event::Event;
use crate::program::orchestration::edits::{id_of, is_skipped};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanError, Revision};
use crate::program::orchestration::{ExecutionState, MOST_ASKED, MOST_PLANS, execute_orchestration};
use crate::program::program::Program;
use crate::program::recheck::Recheck;

/// How many of the check's sentences a refusal repeats.
const MOST_FAULTS: usize = 5;

/// What a topic's frame keeps of its plans. It is small: at most [`crate::program::orchestration::MOST_PLANS`] plans, none of
/// them large. The actions themselves are not kept: they are the script's, changed by these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plans {
    /// The plans that count, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<Applied>,
    /// How often a model was asked for one. Whoever asks counts it, before it asks.
    pub asked: u32,
    pub refused: u32,
}

/// A plan that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    pub plan: OrchestrationPlan,
    /// How far the visit had come when it was applied.
    pub at: Cursor,
}

/// The topic after a plan.
pub struct Accepted {
    /// The session's program from here on, until the topic is left.
    pub program: Program,
    pub actions: Vec<Value>,
}

impl Plans {
    /// Whether this visit may have no further plan, or a model was asked often enough for one.
    pub fn are_used_up(&self) -> bool {
        self.count() >= MOST_PLANS || self.asked >= MOST_ASKED
    }

    /// For what a plan would be made that is asked for now.
    pub fn revision(&self, cursor: Cursor) -> Revision {
        Revision { plans: self.count(), cursor }
    }

    /// The actions of this visit, from those of the script ([`Recheck::actions`]).
    /// Errors: When a kept plan cannot be executed: what is stored is of another script or another release.
    pub fn replay(&self, original: Vec<Value>) -> Result<Vec<Value>, PlanError> {
        let mut actions = original;
        for (plans, Applied { plan, at }) in (0..).zip(&self.applied) {
            actions = execute_orchestration(plan, &ExecutionState { actions: &actions, cursor: *at, plans })?;
        }
        Ok(actions)
    }

    /// The program of this visit, from the script: for a session that is taken up again. `None` when no plan counts, and the
    /// program is that of the script.
    /// Errors: As [`Plans::replay`], and when the check does not let pass what it let pass before.
    pub fn program(&self, topic: &str, recheck: &dyn Recheck) -> Result<Option<Accepted>, PlanError> {
        if self.applied.is_empty() {
            return Ok(None);
        }
        let actions = self.replay(original(topic, recheck)?)?;
        let program = recheck.recheck(topic, &actions).map_err(|faults| not_sound(&faults))?;
        Ok(Some(Accepted { program, actions }))
    }

    /// Executes a plan that arrived, has the result checked, and keeps it. Gives the program that the session runs from here on.
    /// Errors: [`PlanError`] with what [`execute_orchestration`] or the check says (`does-not-check`). It is counted; nothing else
    /// changes.
    pub fn apply(
        &mut self,
        plan: OrchestrationPlan,
        cursor: Cursor,
        topic: &str,
        recheck: &dyn Recheck,
    ) -> Result<Accepted, PlanError> {
        let accepted = self.tried(&plan, cursor, topic, recheck);
        match accepted {
            Ok(_) => self.applied.push(Applied { plan, at: cursor }),
            Err(_) => self.refused += 1,
        }
        accepted
    }

    fn tried(
        &self,
        plan: &OrchestrationPlan,
        cursor: Cursor,
        topic: &str,
        recheck: &dyn Recheck,
    ) -> Result<Accepted, PlanError> {
        let actions = self.replay(original(topic, recheck)?)?;
        let state = ExecutionState { actions: &actions, cursor, plans: self.count() };
        let actions = execute_orchestration(plan, &state)?;
        let program = recheck.recheck(topic, &actions).map_err(|faults| not_sound(&faults))?;
        Ok(Accepted { program, actions })
    }

    fn count(&self) -> u32 {
        u32::try_from(self.applied.len()).unwrap_or(u32::MAX)
    }

    /// The event of a plan: what it was, and the actions of the script beside those that this visit runs from here on.
    /// `analysis` is what asked for it, `from` the action that was analysed.
    pub fn told(
        &self,
        plan: &OrchestrationPlan,
        refused: Option<&PlanError>,
        (analysis, from): (&Value, &str),
        original: &[Value],
    ) -> Event {
        let now = self.replay(original.to_vec()).unwrap_or_else(|refused| {
            error!(code = refused.code, "the plans of a topic do not fit its actions: {refused}");
            // What is not known is not told.
            Vec::new()
        });
        let reason = analysis.get("intervention_reason").and_then(Value::as_str).unwrap_or_default();
        Event::Orchestrated {
            reason: reason.to_owned(),
            route: plan.action.name(),
            from: from.to_owned(),
            why: refused.map_or_else(|| Message::text(plan.reason.clone()), |refused| refused.why.clone()),
            accepted: refused.is_none(),
            plan: serde_json::to_value(plan).unwrap_or_default(),
            original: ids(original),
            now: ids(&now),
        }
    }
}

/// The ids of the actions that run, in order.
fn ids(actions: &[Value]) -> Vec<String> {
    actions.iter().filter(|action| !is_skipped(action)).map(|action| id_of(action).to_owned()).collect()
}

fn original(topic: &str, recheck: &dyn Recheck) -> Result<Vec<Value>, PlanError> {
    recheck.actions(topic).ok_or_else(|| PlanError::new("unknown-topic", "the script has no such topic"))
}

fn not_sound(faults: &[String]) -> PlanError {
    let listed = faults.iter().take(MOST_FAULTS).cloned().collect::<Vec<_>>().join("; ");
    let more = faults.len().saturating_sub(MOST_FAULTS);
    let why = match more {
        0 => msg!("the topic would not be a valid script: {listed}"),
        _ => msg!("the topic would not be a valid script: {listed}; and {more} more"),
    };
    PlanError::new("does-not-check", why)
}
