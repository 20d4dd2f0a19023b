//! Answers for clients: from the model or the script of the server, or well-formed ones when their replies cannot be used.

use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::behavior::actions::NextBehavior;
use crate::behavior::goal::GoalLevel;
use crate::behavior::judgement::BehaviorJudgement;
use crate::behavior::live::LiveBehavior;
use crate::behavior::model::ask_model;
use crate::behavior::plan::{PlanLevel, WorkflowPlan};
use crate::behavior::question::Question;
use crate::behavior::request::BehaviorRequest;
use crate::behavior::script::run_script;
use crate::problem::Problem;
use crate::state::ServerState;

async fn ask<T>(
    state: &ServerState,
    request: &BehaviorRequest,
    question: Question,
    read: impl Fn(&Value) -> Result<T, Message> + Sync,
    live: Option<&mut LiveBehavior>,
) -> Result<Option<T>, Problem> {
    match &state.settings.behavior.script {
        Some(script) => run_script(state, script, request, question, &read, live).await,
        None => ask_model(state.sessions.engine(), &state.settings, request, question, &read, live).await,
    }
}

/// The next behavior.
pub(crate) async fn next_behavior(
    state: &ServerState,
    request: &BehaviorRequest,
    language: Language,
) -> Result<NextBehavior, Problem> {
    let found = ask(state, request, Question::Actions, NextBehavior::read, None).await?;
    Ok(found.unwrap_or_else(|| NextBehavior::nothing(&msg!("no usable actions were given").render(language))))
}

/// The next behavior, whose actions are sent as soon as the model has written them. None if no usable reply was given.
///
/// # Errors
/// As when a behavior is asked for, also after actions were sent.
pub(crate) async fn live_behavior(
    state: &ServerState,
    request: &BehaviorRequest,
    live: &mut LiveBehavior,
) -> Result<Option<NextBehavior>, Problem> {
    ask(state, request, Question::Actions, NextBehavior::read, Some(live)).await
}

/// Whether the target of the step is achieved.
pub(crate) async fn judgement(
    state: &ServerState,
    request: &BehaviorRequest,
    language: Language,
) -> Result<BehaviorJudgement, Problem> {
    let found = ask(state, request, Question::Judgement, BehaviorJudgement::read, None).await?;
    Ok(found.unwrap_or_else(|| BehaviorJudgement::undecided(&msg!("no usable judgement was given").render(language))))
}

/// The plan of a level.
pub(crate) async fn plan(
    state: &ServerState,
    request: &BehaviorRequest,
    level: PlanLevel,
    language: Language,
) -> Result<WorkflowPlan, Problem> {
    let read = |reply: &Value| WorkflowPlan::read(level, reply, request);
    let found = ask(state, request, Question::Plan(level), read, None).await?;
    Ok(found
        .unwrap_or_else(|| WorkflowPlan::undivided(level, request, &msg!("what the notebook is for").render(language))))
}

/// The text that stands for actions where there are none.
pub(crate) fn text_without_actions(request: &BehaviorRequest, language: Language) -> String {
    let goal = request.goal(GoalLevel::Behavior);
    match goal.is_empty() {
        true => msg!("No actions were given.").render(language),
        false => msg!("No actions were given for: {goal}").render(language),
    }
}
