//! Orchestration (LANGUAGE.md section 9, "Path 2"): when a monitor says that other words will not do, a model plans the rest
//! of the topic anew, for this session only.
//!
//! Three operations, as 004 names them under "TopicActionOrchestrator": [`should_orchestrate`] decides from booleans and
//! counts, [`generate_orchestration_plan`] asks a model, [`execute_orchestration`] is a pure function from a list of actions to
//! another one. What comes out is checked like a script ([`crate::program::recheck::Recheck`]) before it counts.

pub mod asking;
pub mod edits;
pub mod plan;
pub mod plans;

use serde_json::{Map, Value};
use tracing::{debug, warn};

use crate::model::error::ModelError;
use crate::model::message::{Message, Role};
use crate::model::provider::{Provider, Silent};
use crate::model::request::{ModelRequest, Purpose, Task};
use crate::program::event::ModelCall;
use crate::program::orchestration::asking::{OrchestrationContext, names, shape};
use crate::program::orchestration::edits::{Edit, is_skipped};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, Refused};
use crate::prompt::roles::PromptRole;
use crate::reply::read::read;

/// The name of the template and of the schema of its replies.
pub const ORCHESTRATOR: &str = "topic_orchestrator";

/// How many plans may change one visit of a topic.
pub const MOST_PLANS: u32 = 5;

/// How often a model may be asked for a plan in one visit of a topic, whatever becomes of its plans.
pub const MOST_ASKED: u32 = 10;

/// What a plan is executed on.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionState<'a> {
    /// The actions of the topic as this visit has them now, as [`crate::program::recheck::Recheck::actions`] writes them.
    pub actions: &'a [Value],
    /// How far the visit has come.
    pub cursor: Cursor,
    /// How many plans were applied in this visit.
    pub plans: u32,
}

/// What came of asking for a plan.
#[derive(Debug, Default)]
pub struct Generated {
    /// The plan; `None` when the model wants no change, or anything at all went wrong.
    pub plan: Option<OrchestrationPlan>,
    /// The call; `None` when no model was asked.
    pub call: Option<ModelCall>,
    /// Why there is no plan though one was asked for. Holds nothing that a person or a model said.
    pub fault: Option<String>,
    /// `llm_prompt` and `llm_response`, for exports with `--calls`; empty when there is no reply.
    pub debug_info: Map<String, Value>,
}

/// Whether a plan should be asked for: the analysis says that one is needed, the topic's strategy allows it, this visit has not
/// used up its plans, and there is an action that a plan could change. Nothing here weighs what the analysis says.
///
/// `analysis` is the JSON of a `MonitorAnalysis`.
pub fn should_orchestrate(analysis: &Value, context: &OrchestrationContext) -> bool {
    let needed = analysis.get("orchestration_needed") == Some(&Value::Bool(true));
    let Cursor { at, begun } = context.revision.cursor;
    let current = begun && at < context.actions.len();
    let to_come = context.actions.iter().skip(at).any(|action| !is_skipped(action));
    needed
        && context.allowed
        && context.revision.plans < MOST_PLANS
        && context.asked < MOST_ASKED
        && (current || to_come)
}

/// Asks a model for a plan. Never fails: a template that cannot be rendered, a model that cannot be reached and a reply that
/// cannot be read give no plan, a line in the log, and the record of the call that was made.
///
/// It takes everything from `context`, so that it can run beside the conversation and be dropped at any moment.
pub async fn generate_orchestration_plan(analysis: &Value, context: &OrchestrationContext) -> Generated {
    let failed = |fault: String| {
        warn!(topic = context.topic_id, fault, "there is no plan for the rest of the topic");
        Generated { fault: Some(fault), ..Generated::default() }
    };
    let shape = match shape() {
        Ok(shape) => shape,
        Err(error) => return failed(error.to_string()),
    };
    let rendered = context.program.templates.get(ORCHESTRATOR, 1).and_then(|template| {
        let messages = template.render(&names(analysis, context))?;
        Ok((messages, template.front().clone()))
    });
    let (rendered, front) = match rendered {
        Ok(rendered) => rendered,
        Err(error) => return failed(error.to_string()),
    };
    let message = |role: PromptRole| match role {
        PromptRole::System => Role::System,
        PromptRole::User => Role::User,
        PromptRole::Assistant => Role::Assistant,
    };
    let messages: Vec<Message> =
        rendered.into_iter().map(|said| Message { role: message(said.role), content: said.content }).collect();
    let prompt: Value = messages.iter().map(|message| as_value(message)).collect();
    let request = ModelRequest {
        messages,
        schema: Some(shape.schema().clone()),
        temperature: front.temperature,
        max_tokens: front.max_tokens,
        task: task(context),
    };
    let mut call = ModelCall {
        call_id: context.call_id.clone(),
        purpose: Purpose::Orchestrator.name(),
        bent: Value::Array(vec![]),
        ..ModelCall::default()
    };
    let clock = context.services.clock.as_ref();
    let began = clock.elapsed_ms();
    let model = front.model.as_deref().or(context.program.model.as_deref());
    let answered = match context.services.models.provider(model) {
        Ok(provider) => ask(provider.as_ref(), &request, &mut call).await,
        Err(error) => Err(error),
    };
    call.ms = clock.elapsed_ms().saturating_sub(began);
    let text = match answered {
        Ok(text) => text,
        Err(error) => {
            call.error = Some(error.to_string());
            call.attempts = error.attempts();
            return Generated { call: Some(call), ..failed(error.to_string()) };
        }
    };
    debug!(raw = text, "what the orchestrator answered");
    let mut debug_info = Map::new();
    debug_info.insert("llm_prompt".into(), prompt);
    debug_info.insert("llm_response".into(), Value::from(text.as_str()));
    match read(&text, &shape) {
        Ok(reply) => {
            call.parse_retry_count = Some(reply.parse_retry_count);
            call.bent = serde_json::to_value(&reply.bends).unwrap_or_default();
            let plan = OrchestrationPlan::of_reply(&reply.object, context.revision);
            Generated { plan, call: Some(call), fault: None, debug_info }
        }
        Err(unreadable) => {
            call.parse_retry_count = Some(unreadable.retry_count());
            call.error = Some("the reply could not be read".into());
            Generated { call: Some(call), debug_info, ..failed(unreadable.to_string()) }
        }
    }
}

/// The list of actions that `plan` makes of `state`. What is done stays as it is; only what is still to come changes, and of
/// the current action its content and exit. That the result is a sound script is for the check to say.
///
/// # Errors
/// [`Refused`], and nothing changes: the plan is one too many, was made for another state, comes too late, names what is not
/// there, would empty the topic, is too large, lacks what its change needs, or changes nothing.
pub fn execute_orchestration(plan: &OrchestrationPlan, state: &ExecutionState<'_>) -> Result<Vec<Value>, Refused> {
    if state.plans >= MOST_PLANS {
        let why = format!("this visit of the topic has been changed {MOST_PLANS} times, which is the most");
        return Err(Refused::new("too-many-plans", why));
    }
    let (then, now) = (plan.revision.cursor, state.cursor);
    if plan.revision.plans != state.plans || then.at > now.at {
        let why = "another plan was applied since this one was asked for";
        return Err(Refused::new("stale-plan", why));
    }
    if now.at >= state.actions.len() {
        return Err(Refused::new("too-late", "every action of the topic is done"));
    }
    Edit::bounded(plan)?;
    let list = plan.action.apply(&Edit { actions: state.actions, now, then }, plan)?;
    if list == state.actions {
        return Err(Refused::new("nothing-changes", "the plan leaves everything as it is"));
    }
    Ok(list)
}

/// Asks, and notes what it cost.
async fn ask(provider: &dyn Provider, request: &ModelRequest, call: &mut ModelCall) -> Result<String, ModelError> {
    provider.name().clone_into(&mut call.model);
    let reply = provider.complete(request, &mut Silent).await?;
    call.tokens_in = reply.tokens_in;
    call.tokens_out = reply.tokens_out;
    call.attempts = reply.attempts;
    Ok(reply.text)
}

fn task(context: &OrchestrationContext) -> Task {
    Task {
        purpose: Purpose::Orchestrator,
        kind: ORCHESTRATOR.to_owned(),
        action_id: context.action_id.clone(),
        content: String::new(),
        wanted: Vec::new(),
        answer: None,
        inputs: Vec::new(),
        round: context.round,
        call: context.asked,
        opening: false,
    }
}

fn as_value(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    serde_json::json!({ "role": role, "content": message.content })
}
