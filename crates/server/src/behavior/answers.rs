//! Answers for clients: from the model or the script of the server, or well-formed ones when their replies cannot be used.

use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::Value;

use crate::behavior::actions::NextBehavior;
use crate::behavior::goal::GoalLevel;
use crate::behavior::judgement::BehaviorJudgement;
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
) -> Result<Option<T>, Problem> {
    match &state.settings.behavior.script {
        Some(script) => run_script(state, script, request, question, &read).await,
        None => ask_model(state.sessions.engine(), &state.settings, request, question, &read).await,
    }
}

/// The next behavior.
pub(crate) async fn next_behavior(
    state: &ServerState,
    request: &BehaviorRequest,
    language: Language,
) -> Result<NextBehavior, Problem> {
    let found = ask(state, request, Question::Actions, NextBehavior::read).await?;
    Ok(found.unwrap_or_else(|| NextBehavior::nothing(&msg!("no usable actions were given").render(language))))
}

/// Whether the target of the step is achieved.
pub(crate) async fn judgement(
    state: &ServerState,
    request: &BehaviorRequest,
    language: Language,
) -> Result<BehaviorJudgement, Problem> {
    let found = ask(state, request, Question::Judgement, BehaviorJudgement::read).await?;
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
    let found = ask(state, request, Question::Plan(level), read).await?;
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
