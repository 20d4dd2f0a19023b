//! The plan that a session works on: the one that it made or changed last. Scripts read it as `bound_plan`.

use bcc_lang::message::msg;
use serde_json::{Value, json};

use crate::actions::plans::edits::plan_failed;
use crate::actions::structured::instruction::whole_number;
use crate::plan::task::PlanId;
use crate::plan::tree::PlanTree;
use crate::program::assigned::Assigned;
use crate::program::assignments::evaluate;
use crate::program::flow::ActionError;
use crate::program::turn::{BOUND_PLAN, Turn};

/// The maximum length of the outline of a plan in a prompt, in characters.
const MAX_OUTLINE_CHARS: usize = 8_000;

/// The plan that the session works on.
pub(crate) fn bound_plan(turn: &Turn<'_>) -> Option<PlanId> {
    turn.variable(BOUND_PLAN)?.get("plan_id")?.as_u64()
}

/// The plan that an author text names; none if it is null.
///
/// # Errors
/// It is no number of a plan.
pub(crate) fn plan_of(turn: &Turn<'_>, plan: &Assigned) -> Result<Option<PlanId>, ActionError> {
    let value = evaluate(turn, std::iter::once(("plan", plan)))?.pop().map(|(_, value)| value.into_value());
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match plan_number(&value) {
            Some(plan) => Ok(Some(plan)),
            None => Err(ActionError::failed("no-plan", msg!("`plan` must be the number of a plan"))),
        },
    }
}

/// The plan with this number, or with the number that a text consists of.
pub(crate) fn plan_number(value: &Value) -> Option<PlanId> {
    whole_number(value).and_then(|number| PlanId::try_from(number).ok())
}

/// The session works on this plan from now on. Also called when the plan changed, so that `bound_plan` says what it is now.
pub(crate) async fn bind(turn: &Turn<'_>, plan: PlanId) -> Result<(), ActionError> {
    let summary = turn.plans.with_tree(plan, summary).await;
    match summary {
        Ok(summary) => turn.set(BOUND_PLAN, summary, None).map(|_| ()),
        Err(error) if error.is_rejection() => unbind(turn, plan),
        Err(error) => Err(plan_failed(&error)),
    }
}

/// The plan does not exist any more.
pub(crate) fn unbind(turn: &Turn<'_>, plan: PlanId) -> Result<(), ActionError> {
    if bound_plan(turn) == Some(plan) {
        turn.set(BOUND_PLAN, json!({ "plan_id": null, "title": null, "status": null, "tasks": 0 }), None)?;
    }
    Ok(())
}

fn summary(tree: &PlanTree) -> Value {
    let head = tree.head();
    let mut summary = json!({
        "plan_id": tree.id(), "title": head.title, "status": head.status.name(), "tasks": tree.len(),
    });
    if let Some(fields) = summary.as_object_mut() {
        fields.extend(tree.counts().all().map(|(status, count)| (status.name().to_owned(), json!(count))));
    }
    summary
}

/// The outline of a plan for a prompt; empty without one.
pub(crate) async fn plan_outline(turn: &Turn<'_>, plan: Option<PlanId>) -> Result<String, ActionError> {
    let Some(plan) = plan else { return Ok(String::new()) };
    match turn.plans.with_tree(plan, |tree| tree.outline(MAX_OUTLINE_CHARS)).await {
        Ok(outline) => Ok(outline),
        Err(error) if error.is_rejection() => Ok(String::new()),
        Err(error) => Err(plan_failed(&error)),
    }
}
