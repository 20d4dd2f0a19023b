//! Runs a script for a client (docs/protocol.md): the request is its variable `request`, and its variable `reply` the answer.

use std::sync::Arc;

use bcc_engine::engine::RunRequest;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::schema::embedded::reply_rules;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_llm::reply::read::read as read_reply;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::actions::behaviors::model::received;
use serde_json::{Value, json};

use crate::behavior::question::Question;
use crate::behavior::request::BehaviorRequest;
use crate::problem::Problem;
use crate::state::ServerState;

/// The variable of a script that holds the request.
const REQUEST: &str = "request";

/// The variable of a script that holds its answer.
const REPLY: &str = "reply";

/// How often the script is run again when its answer cannot be used.
const RETRIES: u32 = 1;

/// Runs the script until `read` takes its answer. None if no answer can be used.
///
/// # Errors
/// As when a session of the script is started.
pub(crate) async fn run_script<T>(
    state: &ServerState,
    script: &str,
    request: &BehaviorRequest,
    question: Question,
    read: &(impl Fn(&Value) -> Result<T, Message> + Sync),
) -> Result<Option<T>, Problem> {
    let entry = state.catalog.find(script).await?;
    for attempt in 0..=RETRIES {
        let id = secret_id(&entry.session_id);
        let run = RunRequest {
            file: entry.file.clone(),
            // What the script keeps in global variables belongs to the notebook.
            user: Some(request.notebook_user().unwrap_or_else(|| id.clone())),
            values: ExactValues::from_iter([(REQUEST.to_owned(), ExactValue::new(value(request, question), None))]),
            model: state.settings.model.clone(),
            ..RunRequest::default()
        };
        state.sessions.start(run, &id).await?;
        let answer = match reply(state, &id).await? {
            Some(Value::String(text)) => text_reply(question, &text),
            Some(value) => Ok(value),
            None => Err(msg!("the session `{id}` has ended without a value of `reply`, or waits for somebody")),
        };
        match answer.and_then(|value| read(&value)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(why) => {
                tracing::warn!(session = %id, question = question.name(), attempt, %why, "an answer of a script cannot be used");
            }
        }
    }
    Ok(None)
}

/// What the script sees of the request.
fn value(request: &BehaviorRequest, question: Question) -> Value {
    let location = &request.observed.location;
    json!({
        "kind": question.name(),
        "goal": request.goal(question.goal_level()),
        "state": request.state.map(|state| state.name()),
        "stage_id": location.stage_id,
        "step_id": location.step_id,
        "behavior_id": location.behavior_id,
        "iteration": location.behavior_iteration,
        "todo_list": request.todo_list(),
        "variables": request.variables(),
        "feedback": request.feedback,
        "observation": request.shown,
    })
}

/// The value of `reply` in a session that has ended.
async fn reply(state: &ServerState, id: &str) -> Result<Option<Value>, Problem> {
    let store = Arc::clone(state.sessions.store());
    let has_ended = store.session(id).await?.is_some_and(|row| row.status == "completed");
    if !has_ended {
        return Ok(None);
    }
    let variables = store.variables(id).await?;
    let set = variables.into_iter().find(|row| row.scope == "session" && row.name == REPLY);
    let value: Option<Value> = set.and_then(|row| serde_json::from_str(&row.value).ok());
    Ok(value.filter(|value| !value.is_null()))
}

/// A text is read as the reply of a model.
fn text_reply(question: Question, text: &str) -> Result<Value, Message> {
    let unreadable = || Message::word("it contains no readable JSON object");
    let rules = reply_rules(question.template()).ok_or_else(unreadable)?;
    let shape = ReplyShape::new(&rules, &[]).map_err(|_| unreadable())?;
    received(question.template(), text, &read_reply(text, &shape, true), Some(&shape))
}
