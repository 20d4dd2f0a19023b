//! Runs a script for a client (docs/protocol.md): the request is its variable `request`, and its variable `reply` the answer.

use std::future::Future;
use std::pin::{Pin, pin};

use bcc_engine::engine::RunRequest;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::schema::embedded::reply_rules;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_llm::model::provider::LiveObserver as _;
use bcc_llm::reply::read::read as read_reply;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::actions::behaviors::model::received;
use bcc_runtime::run::head::SessionStatus;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::behavior::live::LiveBehavior;
use crate::behavior::question::Question;
use crate::behavior::request::BehaviorRequest;
use crate::live::command::EndedTurn;
use crate::live::feed::{EventFeed, FeedItem};
use crate::problem::Problem;
use crate::state::ServerState;

/// The variable of a script that holds the request.
const REQUEST: &str = "request";

/// The variable of a script that holds its answer.
const REPLY: &str = "reply";

/// How often the script is run again when its answer cannot be used.
const RETRIES: u32 = 1;

/// Runs the script until `read` takes its answer, of which `live` gets the elements while the session runs, if the script only appends
/// to it. None if no answer can be used.
///
/// # Errors
/// As when a session of the script is started; `Unavailable` if it stops before it has said anything.
pub(crate) async fn run_script<T>(
    state: &ServerState,
    script: &str,
    request: &BehaviorRequest,
    question: Question,
    read: &(impl Fn(&Value) -> Result<T, Message> + Sync),
    mut live: Option<&mut LiveBehavior>,
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
        if let Some(live) = live.as_deref_mut() {
            live.restart();
        }
        // The feed is the same one while somebody has it.
        let feed = state.sessions.feed(&id);
        let launched = state.sessions.launch(run, &id).await?;
        let grows = launched.growing_lists.contains(REPLY);
        let mut ended = pin!(launched.end(&id));
        let turn = match live.as_deref_mut().filter(|_| grows) {
            Some(live) => send_while_running(state, &id, &feed, live, ended.as_mut()).await?,
            None => ended.await?,
        };
        if turn.status == SessionStatus::Stopped && !live.as_deref().is_some_and(LiveBehavior::has_sent) {
            return Err(Problem::stopped(&id));
        }
        let answer = match reply(state, &id).await? {
            Some(Value::String(text)) => text_reply(question, &text),
            Some(value) => Ok(value),
            None => Err(msg!("the session `{id}` has ended without a value of `reply`, or waits for somebody")),
        };
        match answer.and_then(|value| read(&value)) {
            Ok(answer) => return Ok(Some(answer)),
            Err(why) => {
                tracing::warn!(session = %id, question = question.name(), attempt, %why, "an answer of a script cannot be used");
                // What was sent cannot be replaced by another answer.
                if live.as_deref().is_some_and(LiveBehavior::has_sent) {
                    return Ok(None);
                }
            }
        }
    }
    Ok(None)
}

/// Waits for the end of a session, and passes the elements of its answer on as soon as they are committed.
async fn send_while_running(
    state: &ServerState,
    id: &str,
    feed: &EventFeed,
    live: &mut LiveBehavior,
    mut ended: Pin<&mut impl Future<Output = Result<EndedTurn, Problem>>>,
) -> Result<EndedTurn, Problem> {
    // While somebody reads the feed, each turn is committed at once. What was committed before is read first.
    let mut events = feed.subscribe();
    loop {
        // One read is enough for all that was committed by now.
        while events.try_recv().is_ok() {}
        match stored_reply(state, id).await {
            Ok(Some(Value::Array(elements))) => live.elements(&elements),
            Ok(_) => {}
            // The script goes on, and the answer is read again at its end.
            Err(problem) => tracing::warn!(session = %id, ?problem, "the answer of a script cannot be read yet"),
        }
        loop {
            let event = tokio::select! {
                biased;
                ended = ended.as_mut() => return ended,
                event = events.recv() => event,
            };
            match event {
                Ok(FeedItem::Committed { kind: "variable_set", .. }) | Err(RecvError::Lagged(_)) => break,
                Ok(_) => {}
                Err(RecvError::Closed) => return ended.await,
            }
        }
    }
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
    let has_ended = state.sessions.store().session(id).await?.is_some_and(|row| row.status == "completed");
    if !has_ended {
        return Ok(None);
    }
    stored_reply(state, id).await
}

/// The value of `reply` in a session, as it was committed last.
async fn stored_reply(state: &ServerState, id: &str) -> Result<Option<Value>, Problem> {
    let variables = state.sessions.store().variables(id).await?;
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
