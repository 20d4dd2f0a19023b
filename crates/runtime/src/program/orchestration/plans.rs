//! The plans of one visit of a topic: what its frame stores, and how they are applied to the script's actions.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::error;

use crate::program::event::Event;
use crate::program::orchestration::content::check_skill;
use crate::program::orchestration::edits::{id_of, is_skipped};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanChange, PlanError, Revision};
use crate::program::orchestration::{ExecutionState, MAX_PLAN_REQUESTS, MAX_PLANS, execute_orchestration};
use crate::program::program::Program;
use crate::program::recheck::Recheck;

/// The maximum number of check errors that a rejection repeats.
const MAX_CHECK_ERRORS: usize = 5;

/// The plans in a topic's frame. Small: at most `crate::program::orchestration::MAX_PLANS` plans of limited size. The actions
/// themselves are not stored: they are the script's, changed by these plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plans {
    /// The applied plans, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<Applied>,
    /// How often a model was asked for a plan. The caller counts before it asks.
    #[serde(rename = "asked")]
    pub requests: u32,
    /// How often a model was asked once more because its plan was rejected.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated: u32,
    #[serde(rename = "refused")]
    pub rejected: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde needs
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// An applied plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    pub plan: OrchestrationPlan,
    /// The progress of the visit when it was applied.
    pub at: Cursor,
    /// The id of the action that it modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

/// What a plan contributed to an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOrigin {
    /// The complete action.
    Inserted,
    /// Fields of its config.
    Modified,
}

/// The result of an accepted plan.
pub struct Accepted {
    /// The session's program until the topic is left.
    pub program: Program,
    pub actions: Vec<Value>,
    /// The id of the action that the plan modified.
    pub modified: Option<String>,
}

impl Plans {
    /// Whether this visit has reached its limit of plans or of requests.
    pub(crate) fn are_used_up(&self) -> bool {
        self.count() >= MAX_PLANS || self.requests >= MAX_PLAN_REQUESTS
    }

    /// The state that a plan requested now would be made for.
    pub fn revision(&self, cursor: Cursor) -> Revision {
        Revision { plans: self.count(), cursor }
    }

    /// The actions of this visit, computed from those of the script ([`Recheck::actions`]).
    /// Errors: A stored plan cannot be executed: it belongs to another script or another release.
    pub fn replay(&self, original: Vec<Value>) -> Result<Vec<Value>, PlanError> {
        let mut actions = original;
        for (plans, Applied { plan, at, .. }) in (0..).zip(&self.applied) {
            actions = execute_orchestration(plan, &ExecutionState { actions: &actions, cursor: *at, plans })?;
        }
        Ok(actions)
    }

    /// The program of this visit, computed from the script, for a resumed session. `None` if no plan was applied: then the script's
    /// program is used.
    /// Errors: As [`Plans::replay`], and if the check rejects what it accepted before.
    pub fn program(&self, topic: &str, recheck: &dyn Recheck) -> Result<Option<Accepted>, PlanError> {
        if self.applied.is_empty() {
            return Ok(None);
        }
        let actions = self.replay(original(topic, recheck)?)?;
        let program = recheck.recheck(topic, &actions).map_err(|errors| check_failed(&errors))?;
        Ok(Some(Accepted { program, actions, modified: None }))
    }

    /// Executes a plan, has the result checked, and stores the plan. Returns the program that the session uses from then on.
    /// Errors: [`PlanError`] of `execute_orchestration` or of the check (`does-not-check`). The rejection is counted; nothing else
    /// changes.
    pub fn apply(
        &mut self,
        plan: OrchestrationPlan,
        cursor: Cursor,
        topic: &str,
        recheck: &dyn Recheck,
    ) -> Result<Accepted, PlanError> {
        let accepted = self.try_apply(&plan, cursor, topic, recheck);
        match &accepted {
            Ok(accepted) => self.applied.push(Applied { modified: accepted.modified.clone(), plan, at: cursor }),
            Err(_) => self.rejected += 1,
        }
        accepted
    }

    fn try_apply(
        &self,
        plan: &OrchestrationPlan,
        cursor: Cursor,
        topic: &str,
        recheck: &dyn Recheck,
    ) -> Result<Accepted, PlanError> {
        let actions = self.replay(original(topic, recheck)?)?;
        let state = ExecutionState { actions: &actions, cursor, plans: self.count() };
        check_plan(plan, &state, topic, recheck)
    }

    /// What the plans contributed to the action `id`.
    pub fn origin(&self, id: &str) -> Option<PlanOrigin> {
        let of = |applied: &Applied| match applied.plan.action {
            PlanChange::Insert => {
                let new = applied.plan.new_action.as_ref().is_some_and(|new| id_of(new) == id);
                new.then_some(PlanOrigin::Inserted)
            }
            PlanChange::Modify => {
                applied.modified.as_deref().is_some_and(|modified| modified == id).then_some(PlanOrigin::Modified)
            }
            PlanChange::Skip | PlanChange::Reorder | PlanChange::NoChange => None,
        };
        self.applied.iter().find_map(of)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.applied.len()).unwrap_or(u32::MAX)
    }

    /// The event of a plan: the plan, the actions of the script and those that this visit runs from then on. `analysis` is the
    /// analysis that requested it, `from` the analyzed action.
    pub fn event(
        &self,
        plan: &OrchestrationPlan,
        rejection: Option<&PlanError>,
        (analysis, from): (&Value, &str),
        original: &[Value],
    ) -> Event {
        let now = self.replay(original.to_vec()).unwrap_or_else(|rejected| {
            error!(code = rejected.code, "the plans of a topic do not fit its actions: {rejected}");
            // Unknown actions are not reported.
            Vec::new()
        });
        let reason = analysis.get("intervention_reason").and_then(Value::as_str).unwrap_or_default();
        Event::Orchestrated {
            reason: reason.to_owned(),
            route: plan.action.name(),
            from: from.to_owned(),
            why: rejection.map_or_else(|| Message::text(plan.reason.clone()), |rejection| rejection.why.clone()),
            accepted: rejection.is_none(),
            plan: serde_json::to_value(plan).unwrap_or_default(),
            original: ids(original),
            now: ids(&now),
        }
    }
}

/// Executes a plan and has the result checked, without storing anything.
pub(crate) fn check_plan(
    plan: &OrchestrationPlan,
    state: &ExecutionState<'_>,
    topic: &str,
    recheck: &dyn Recheck,
) -> Result<Accepted, PlanError> {
    let actions = execute_orchestration(plan, state)?;
    let program = recheck.recheck(topic, &actions).map_err(|errors| check_failed(&errors))?;
    let changed = match plan.action {
        PlanChange::Insert => plan.new_action.as_ref().map(id_of),
        // A modification changes exactly one action.
        PlanChange::Modify => {
            let pairs = actions.iter().zip(state.actions);
            pairs.filter(|(now, before)| now != before).map(|(now, _)| id_of(now)).next()
        }
        PlanChange::Skip | PlanChange::Reorder | PlanChange::NoChange => None,
    };
    let changed = changed.map(str::to_owned);
    let steps = program.phases.iter().flat_map(|phase| &phase.topics).filter(|found| found.id == topic);
    let step = steps.flat_map(|topic| topic.steps.iter()).find(|step| changed.as_deref() == Some(step.id.as_str()));
    if let Some(step) = step.filter(|step| step.action.skill().is_some()) {
        let own = recheck.recheck(topic, &original(topic, recheck)?).map_err(|errors| check_failed(&errors))?;
        check_skill(step, &program, &own)?;
    }
    let modified = changed.filter(|_| plan.action == PlanChange::Modify);
    Ok(Accepted { program, actions, modified })
}

/// The ids of the actions that run, in order.
fn ids(actions: &[Value]) -> Vec<String> {
    actions.iter().filter(|action| !is_skipped(action)).map(|action| id_of(action).to_owned()).collect()
}

fn original(topic: &str, recheck: &dyn Recheck) -> Result<Vec<Value>, PlanError> {
    recheck.actions(topic).ok_or_else(|| PlanError::new("unknown-topic", "the script has no such topic"))
}

fn check_failed(errors: &[String]) -> PlanError {
    let listed = errors.iter().take(MAX_CHECK_ERRORS).cloned().collect::<Vec<_>>().join("; ");
    let more = errors.len().saturating_sub(MAX_CHECK_ERRORS);
    let why = match more {
        0 => msg!("the topic would not be a valid script: {listed}"),
        _ => msg!("the topic would not be a valid script: {listed}; and {more} more"),
    };
    PlanError::new("does-not-check", why)
}
