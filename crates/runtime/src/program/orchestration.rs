//! Orchestration (docs/orchestration.md): if a monitor reports that rephrasing is not enough, a model replans the remaining
//! topic, for this session only.
//!
//! Three operations, described in docs/orchestration.md: [`should_orchestrate`] decides from booleans
//! and counts, [`generate_orchestration_plan`] calls a model, `execute_orchestration` is a pure function from one list of
//! actions to another. The result is checked like a script ([`crate::program::recheck::Recheck`]) before it counts.

pub(crate) mod content;
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
use crate::program::evaluation::log_warnings;
use crate::program::event::ModelCall;
use crate::program::messages::{messages, request};
use crate::program::orchestration::edits::{PlanEdit, is_skipped};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanChange, PlanError, Revision};
use crate::program::orchestration::plan_prompt::{OrchestrationContext, names, shape};
use crate::program::orchestration::plans::check_plan;
use crate::program::reask::{ask_again, rejected_plan_note};
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::request::{Purpose, Task};
use bcc_llm::providers::limit::Deadline;

/// The name of the template and of the schema of its replies.
pub const ORCHESTRATOR: &str = "topic_orchestrator";

/// The version of the template: `topic_orchestrator_v1.md`.
pub const VERSION: u32 = 1;

/// The maximum number of plans that may change one visit of a topic.
pub(crate) const MAX_PLANS: u32 = 5;

/// How often a model may be asked for a plan in one visit of a topic, whether or not its plans are accepted.
pub const MAX_PLAN_REQUESTS: u32 = 10;

/// The state that a plan is executed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExecutionState<'a> {
    /// The current actions of the topic in this visit, in the format of [`crate::program::recheck::Recheck::actions`].
    pub actions: &'a [Value],
    pub cursor: Cursor,
    /// The number of plans applied in this visit.
    pub plans: u32,
}

/// The result of a request for a plan.
#[derive(Debug, Default)]
pub struct Generated {
    /// The plan; `None` if the request failed.
    pub plan: Option<OrchestrationPlan>,
    /// Whether the model was asked once more because its first plan was rejected.
    pub repeated: bool,
    /// The model calls, with their prompts and replies; empty if no model was called.
    pub calls: Vec<ModelCall>,
    /// Why a requested plan is missing. It may contain text of a model's server, so it appears in events, which are masked, and in no
    /// log.
    pub error: Option<Message>,
}

/// Whether to request a plan: the analysis asks for one, the topic's strategy allows it, this visit has plans left, and there is
/// an action that a plan could change. The content of the analysis is not evaluated.
///
/// `analysis` is the JSON of a `MonitorAnalysis`, as frames and rows store it.
pub fn should_orchestrate(analysis: &Value, context: &OrchestrationContext) -> bool {
    let Cursor { at, started: begun } = context.revision.cursor;
    let current = begun && at < context.actions.len();
    let pending = context.actions.iter().skip(at).any(|action| !is_skipped(action));
    analysis.get("orchestration_needed") == Some(&Value::Bool(true))
        && context.allowed
        && context.revision.plans < MAX_PLANS
        && context.asked < MAX_PLAN_REQUESTS
        && (current || pending)
}

/// Requests a plan from a model, within the timeout of `context`; if the plan is rejected, once more with the reason. Never fails:
/// a template that cannot be rendered, a model that cannot be reached and an unreadable reply give no plan, a log entry, and the
/// record of the call.
///
/// Uses only `context`, so that it can run in the background and be dropped at any time.
pub async fn generate_orchestration_plan(analysis: &Value, context: &OrchestrationContext) -> Generated {
    let unprepared = |message: Message| failed(context, BackgroundError { kind: "unprepared".to_owned(), message });
    let prepared = context.program.templates.get(ORCHESTRATOR, VERSION).and_then(|template| {
        let names = names(analysis, context);
        let prompt = messages(&template, &names)?;
        log_warnings(&names);
        Ok((template, prompt))
    });
    let (template, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return unprepared(error.to_message()),
    };
    let shape = match shape() {
        Ok(shape) => shape,
        Err(error) => return unprepared(error.to_message()),
    };
    let models = context.services.models.as_ref();
    let provider = match models.provider(template.front().model.as_deref().or(context.program.model.as_deref())) {
        Ok(provider) if provider.answers(Purpose::Orchestrator, &context.action_id) => provider,
        Ok(provider) => return unprepared(msg!("`{}` does not support plans", provider.name())),
        Err(error) => return failed(context, BackgroundError::from(&error)),
    };
    let deadline = Deadline::after(context.limit);
    let call = |messages: Vec<ChatMessage>, number: u32, call_id: String| BackgroundCall {
        provider: provider.as_ref(),
        request: request(&template, messages, &shape, Task { call: context.call + number, ..task(context) }),
        shape: &shape,
        call_id,
        deadline,
        clock: context.services.clock.as_ref(),
        program: &context.program,
        language: template.language(),
        recording: context.services.recorder.is_some(),
    };
    let mut first = call(prompt.clone(), 0, context.call_id.clone()).ask().await;
    let text = std::mem::take(&mut first.text);
    let first = generated(first, context);
    let Some(rejected) = first.plan.as_ref().and_then(|plan| rejection(plan, context)) else { return first };
    let mut messages = prompt;
    ask_again(&mut messages, &text, rejected_plan_note(&rejected.why.to_string(), template.language()));
    let call_id = format!("{}.{}", context.call_id, first.calls.len());
    let mut second = generated(call(messages, 1, call_id).ask().await, context);
    second.calls.splice(0..0, first.calls);
    // If there is no other plan, the rejection of the first one is recorded.
    Generated { plan: second.plan.or(first.plan), repeated: true, ..second }
}

fn failed(context: &OrchestrationContext, BackgroundError { kind, message }: BackgroundError) -> Generated {
    error!(topic_id = context.topic_id, kind, "there is no plan for the rest of a topic");
    Generated { error: Some(message), ..Generated::default() }
}

/// The plan in a reply, or why there is none.
fn generated(reply: BackgroundReply, context: &OrchestrationContext) -> Generated {
    let BackgroundReply { calls, reading, error: failure, .. } = reply;
    match (reading, failure) {
        (Some(Ok(read)), _) => {
            let plan = OrchestrationPlan::from_reply(&read.object, context.revision, &context.new_id);
            Generated { plan, calls, ..Generated::default() }
        }
        (_, Some(failure)) => Generated { calls, ..failed(context, failure) },
        (Some(Err(unreadable)), None) => {
            error!(
                topic_id = context.topic_id,
                strategies = ?unreadable.strategies(),
                errors = ?unreadable.failures.iter().map(|failure| &failure.error).collect::<Vec<_>>(),
                "a plan for the rest of a topic could not be read, and nothing changes"
            );
            Generated { calls, error: Some(unreadable.to_message()), ..Generated::default() }
        }
        (None, None) => Generated { calls, ..Generated::default() },
    }
}

/// Why a plan would be rejected in the state that it was made for.
fn rejection(plan: &OrchestrationPlan, context: &OrchestrationContext) -> Option<PlanError> {
    if plan.action == PlanChange::NoChange {
        return None;
    }
    let Revision { plans, cursor } = context.revision;
    let state = ExecutionState { actions: &context.actions, cursor, plans };
    check_plan(plan, &state, &context.topic_id, context.services.recheck.as_ref()).err()
}

/// Applies `plan` to the actions of `state`. Finished actions stay as they are; only pending actions change, and the content and
/// exit of the current one. The check decides whether the result is a valid script.
/// Errors: [`PlanError`], without any change: the plan exceeds the limit, was made for another state, is too late, names unknown
/// actions, would empty the topic, is too large, is incomplete, or changes nothing.
pub(crate) fn execute_orchestration(
    plan: &OrchestrationPlan,
    state: &ExecutionState<'_>,
) -> Result<Vec<Value>, PlanError> {
    if state.plans >= MAX_PLANS {
        let why = msg!("this visit to the topic has already been changed {MAX_PLANS} times, which is the maximum");
        return Err(PlanError::new("too-many-plans", why));
    }
    let (planned, now) = (plan.revision.cursor, state.cursor);
    if plan.revision.plans != state.plans || planned.at > now.at {
        let why = "another plan has been applied since this one was requested";
        return Err(PlanError::new("stale-plan", why));
    }
    if now.at >= state.actions.len() {
        return Err(PlanError::new("too-late", "every action of the topic is done"));
    }
    PlanEdit::check_size(plan)?;
    let list = plan.action.apply(&PlanEdit { actions: state.actions, now, planned }, plan)?;
    if list == state.actions {
        return Err(PlanError::new("nothing-changes", "the plan changes nothing"));
    }
    Ok(list)
}

fn task(context: &OrchestrationContext) -> Task {
    Task {
        purpose: Purpose::Orchestrator,
        session: context.session.clone(),
        kind: ORCHESTRATOR.to_owned(),
        action_id: context.action_id.clone(),
        path: context.path.clone(),
        round: context.round,
        call: context.call,
        ..Task::default()
    }
}
