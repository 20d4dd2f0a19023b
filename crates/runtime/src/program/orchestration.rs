//! Orchestration (docs/monitors.md, "Path 2"): when a monitor says that other words will not do, a model plans the rest
//! of the topic anew, for this session only.
//!
//! Three operations, as docs/monitors.md names them under "TopicActionOrchestrator": [`should_orchestrate`] decides from booleans and
//! counts, [`generate_orchestration_plan`] asks a model, [`execute_orchestration`] is a pure function from a list of actions to
//! another one. What comes out is checked like a script ([`crate::program::recheck::Recheck`]) before it counts.

pub mod edits;
pub mod plan;
pub mod plan_prompt;
pub mod plans;

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;
use tracing::error;

use crate::program::background::{BackgroundCall, BackgroundError, BackgroundReply};
use crate::program::event::ModelCall;
use crate::program::messages::{messages, request};
use crate::program::orchestration::edits::{PlanEdit, is_skipped};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanError};
use crate::program::orchestration::plan_prompt::{OrchestrationContext, names, shape};
use bcc_llm::model::request::{Purpose, Task};

/// The name of the template and of the schema of its replies.
pub const ORCHESTRATOR: &str = "topic_orchestrator";

/// The version of the template: `topic_orchestrator_v1.md`.
pub const VERSION: u32 = 1;

/// How many plans may change one visit of a topic.
pub const MOST_PLANS: u32 = 5;

/// How often a model may be asked for a plan in one visit of a topic, whatever becomes of its plans.
pub const MOST_ASKED: u32 = 10;

/// What a plan is executed on.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionState<'a> {
    /// The actions of the topic as this visit has them now, as [`crate::program::recheck::Recheck::actions`] writes them.
    pub actions: &'a [Value],
    pub cursor: Cursor,
    /// How many plans were applied in this visit.
    pub plans: u32,
}

/// What came of asking for a plan.
#[derive(Debug, Default)]
pub struct Generated {
    /// The plan; `None` when the model wants no change, or anything at all went wrong.
    pub plan: Option<OrchestrationPlan>,
    /// The calls, with their prompts and replies; none when no model was asked.
    pub calls: Vec<ModelCall>,
    /// Why there is no plan though one was asked for. It may hold what a model's server said, so it stands in
    /// events, which are masked, and in no log.
    pub fault: Option<Message>,
}

/// Whether a plan should be asked for: the analysis says that one is needed, the topic's strategy allows it, this visit has not
/// used up its plans, and there is an action that a plan could change. Nothing here weighs what the analysis says.
///
/// `analysis` is the JSON of a `MonitorAnalysis`, as frames and rows keep it.
pub fn should_orchestrate(analysis: &Value, context: &OrchestrationContext) -> bool {
    let Cursor { at, begun } = context.revision.cursor;
    let current = begun && at < context.actions.len();
    let to_come = context.actions.iter().skip(at).any(|action| !is_skipped(action));
    analysis.get("orchestration_needed") == Some(&Value::Bool(true))
        && context.allowed
        && context.revision.plans < MOST_PLANS
        && context.asked < MOST_ASKED
        && (current || to_come)
}

/// Asks a model for a plan, within the limit of `context`. Never fails: a template that cannot be rendered, a model that
/// cannot be reached and a reply that cannot be read give no plan, a line in the log, and the record of the call that was made.
///
/// It takes everything from `context`, so that it can run beside the conversation and be dropped at any moment.
pub async fn generate_orchestration_plan(analysis: &Value, context: &OrchestrationContext) -> Generated {
    let failed = |BackgroundError { kind, told }: BackgroundError| {
        error!(topic_id = context.topic_id, kind, "there is no plan for the rest of a topic");
        Generated { fault: Some(told), ..Generated::default() }
    };
    let unprepared = |told: Message| BackgroundError { kind: "unprepared".to_owned(), told };
    let prepared = context.program.templates.get(ORCHESTRATOR, VERSION).and_then(|template| {
        let prompt = messages(&template, &names(analysis, context))?;
        Ok((template, prompt))
    });
    let (template, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(fault) => return failed(unprepared(fault.to_message())),
    };
    let shape = match shape() {
        Ok(shape) => shape,
        Err(fault) => return failed(unprepared(fault.to_message())),
    };
    let models = context.services.models.as_ref();
    let provider = match models.provider(template.front().model.as_deref().or(context.program.model.as_deref())) {
        Ok(provider) if provider.answers(Purpose::Orchestrator, &context.action_id) => provider,
        Ok(provider) => return failed(unprepared(msg!("`{}` does not support plans", provider.name()))),
        Err(fault) => return failed(BackgroundError::from(&fault)),
    };
    let beside = BackgroundCall {
        provider: provider.as_ref(),
        request: request(&template, prompt, &shape, task(context)),
        shape: &shape,
        call_id: context.call_id.clone(),
        limit: context.limit,
        clock: context.services.clock.as_ref(),
        program: &context.program,
        recording: context.services.recorder.is_some(),
    };
    let BackgroundReply { calls, reading, fault } = beside.ask().await;
    match (reading, fault) {
        (Some(Ok(read)), _) => {
            let plan = OrchestrationPlan::of_reply(&read.object, context.revision);
            Generated { plan, calls, fault: None }
        }
        (_, Some(fault)) => Generated { calls, ..failed(fault) },
        (Some(Err(unreadable)), None) => {
            error!(
                topic_id = context.topic_id,
                strategies = ?unreadable.strategies(),
                errors = ?unreadable.failures.iter().map(|failure| &failure.error).collect::<Vec<_>>(),
                "a plan for the rest of a topic could not be read, and nothing changes"
            );
            Generated { calls, fault: Some(unreadable.to_message()), ..Generated::default() }
        }
        (None, None) => Generated { calls, ..Generated::default() },
    }
}

/// The list of actions that `plan` makes of `state`. What is done stays as it is; only what is still to come changes, and of
/// the current action its content and exit. That the result is a sound script is for the check to say.
/// Errors: [`PlanError`], and nothing changes: the plan is one too many, was made for another state, comes too late, names what is not
/// there, would empty the topic, is too large, lacks what its change needs, or changes nothing.
pub fn execute_orchestration(plan: &OrchestrationPlan, state: &ExecutionState<'_>) -> Result<Vec<Value>, PlanError> {
    if state.plans >= MOST_PLANS {
        let why = msg!("this visit to the topic has already been changed {MOST_PLANS} times, which is the maximum");
        return Err(PlanError::new("too-many-plans", why));
    }
    let (then, now) = (plan.revision.cursor, state.cursor);
    if plan.revision.plans != state.plans || then.at > now.at {
        let why = "another plan has been applied since this one was requested";
        return Err(PlanError::new("stale-plan", why));
    }
    if now.at >= state.actions.len() {
        return Err(PlanError::new("too-late", "every action of the topic is done"));
    }
    PlanEdit::bounded(plan)?;
    let list = plan.action.apply(&PlanEdit { actions: state.actions, now, then }, plan)?;
    if list == state.actions {
        return Err(PlanError::new("nothing-changes", "the plan changes nothing"));
    }
    Ok(list)
}

fn task(context: &OrchestrationContext) -> Task {
    Task {
        purpose: Purpose::Orchestrator,
        kind: ORCHESTRATOR.to_owned(),
        action_id: context.action_id.clone(),
        path: context.path.clone(),
        content: String::new(),
        wanted: Vec::new(),
        answer: None,
        inputs: Vec::new(),
        round: context.round,
        call: context.asked,
        opening: false,
    }
}
