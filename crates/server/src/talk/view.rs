//! What the page shows of a conversation: its messages, what it waits for, and how it ended.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bcc_lang::value::declared::DeclaredType;
use bcc_runtime::program::asked_value::AskedValue;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::rows::{MessageRow, SessionRow};
use serde::Serialize;
use serde_json::Value;

use crate::api::reply::open_waiting;
use crate::live::command::SessionCommand;
use crate::state::ServerState;
use crate::talk::beginning::ensure_started;
use crate::talk::error::TalkErrorKind;
use crate::talk::visit::TalkVisit;

/// How many messages the page shows. Earlier ones are in the copy.
const SHOWN_MESSAGES: usize = 400;

/// How many options are offered as buttons, and how long one may be, in characters. Whatever is more is not comfortable to choose from.
const MAX_OPTIONS: usize = 12;
const MAX_OPTION_CHARS: usize = 80;

/// A message on the page.
#[derive(Debug, Serialize)]
pub(crate) struct ShownMessage {
    id: String,
    /// Whether the person wrote it.
    own: bool,
    text: String,
}

impl From<MessageRow> for ShownMessage {
    fn from(row: MessageRow) -> Self {
        Self { own: row.role == "user", id: row.message_id, text: row.text }
    }
}

/// What the conversation waits for.
#[derive(Debug, Serialize)]
pub(crate) struct ShownWaiting {
    /// `answer`, `somebody` (who decides), or `time`.
    r#for: &'static str,
    answer_id: Option<String>,
    /// How the answer is given: `text`, `number`, `date`, `yes_no` or `choice`.
    input: &'static str,
    options: Vec<String>,
}

/// The conversation as it is now.
#[derive(Debug, Serialize)]
struct ShownTalk {
    title: String,
    /// Whether the person gave a consent, and may withdraw it.
    has_consent: bool,
    /// Whether the link was revoked: then the conversation does not go on.
    is_revoked: bool,
    /// `running`, `waiting`, `stopped`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    messages: Vec<ShownMessage>,
    /// Whether there are earlier messages.
    has_earlier: bool,
    waiting: Option<ShownWaiting>,
    can_take_back: bool,
    last_seq: u64,
}

/// `GET /t/TOKEN/SECRET/state`: the conversation as it is now. One whose turn was broken off by the end of a server goes on.
pub(crate) async fn talk_view(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
) -> Result<Response, TalkErrorKind> {
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    ensure_started(&state, &visit).await?;
    let store = state.sessions.store();
    let id = visit.talk.session.as_str();
    // Before the messages: whatever is said in between comes again as an event, and is recognized.
    let row = store.session(id).await?.ok_or(TalkErrorKind::Deleted)?;
    let status = SessionStatus::parse(&row.status).ok_or(TalkErrorKind::Failed)?;
    if status == SessionStatus::Running && visit.link.revoked_at.is_none() {
        go_on(&state, id).await;
    }
    let mut messages = store.messages_tail(id, SHOWN_MESSAGES + 1).await?;
    let has_earlier = messages.len() > SHOWN_MESSAGES;
    if has_earlier {
        messages.remove(0);
    }
    let waiting = match status.is_waiting() {
        true => match open_waiting(store.as_ref(), id, status, row.last_seq).await? {
            Some(event) => Some(waiting_view(&state, &row, &event).await),
            None => None,
        },
        false => None,
    };
    let is_answered = waiting.as_ref().is_some_and(|waiting| waiting.r#for == "answer") && row.answers > 0;
    let shown = ShownTalk {
        title: visit.terms.title,
        has_consent: visit.talk.consent.is_some(),
        is_revoked: visit.link.revoked_at.is_some(),
        status: status_word(status),
        messages: messages.into_iter().map(ShownMessage::from).collect(),
        has_earlier,
        waiting,
        can_take_back: is_answered,
        last_seq: row.last_seq,
    };
    Ok(Json(shown).into_response())
}

/// Continues a session that no task of this server runs.
pub(crate) async fn go_on(state: &ServerState, id: &str) {
    if state.sessions.is_busy(id).await {
        return;
    }
    let (sessions, id) = (std::sync::Arc::clone(&state.sessions), id.to_owned());
    tokio::spawn(async move {
        if let Err(problem) = sessions.send(&id, None, |ended| SessionCommand::Rest { ended }).await {
            tracing::warn!(session = %id, error = %problem.detail(), "a conversation was not continued");
        }
    });
}

pub(crate) const fn status_word(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Running => "running",
        SessionStatus::Completed => "completed",
        SessionStatus::Failed => "failed",
        SessionStatus::Cancelled => "cancelled",
        SessionStatus::Stopped => "stopped",
        SessionStatus::WaitingInput | SessionStatus::WaitingApproval | SessionStatus::WaitingTime => "waiting",
    }
}

/// What an event `waiting` says. Its prompt is not sent: that of an answer is the last message, and any other is not for this person.
pub(crate) async fn waiting_view(state: &ServerState, row: &SessionRow, event: &Value) -> ShownWaiting {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let waits_for = match event.get("for").and_then(Value::as_str) {
        Some("input") => "answer",
        Some("time") => "time",
        _ => "somebody",
    };
    let mut shown = ShownWaiting { r#for: waits_for, answer_id: None, input: "text", options: vec![] };
    if waits_for != "answer" {
        return shown;
    }
    shown.answer_id = text(event.get("answer_id"));
    let Some(action) = text(event.pointer("/location/action_id")) else { return shown };
    // Without a fitting input, any text is an answer.
    let asked = state.sessions.engine().asked_value(row, &action).await.ok().flatten().unwrap_or_default();
    (shown.input, shown.options) = input_of(&asked);
    shown
}

fn input_of(asked: &AskedValue) -> (&'static str, Vec<String>) {
    let options: Vec<String> = asked.choices.iter().filter_map(option_text).collect();
    let is_short = |option: &String| !option.is_empty() && option.chars().count() <= MAX_OPTION_CHARS;
    if !options.is_empty()
        && options.len() == asked.choices.len()
        && options.len() <= MAX_OPTIONS
        && options.iter().all(is_short)
    {
        return ("choice", options);
    }
    let input = match asked.declared {
        Some(DeclaredType::Number | DeclaredType::Integer) => "number",
        Some(DeclaredType::Date) => "date",
        Some(DeclaredType::Boolean) => "yes_no",
        Some(DeclaredType::String | DeclaredType::List | DeclaredType::Object) | None => "text",
    };
    (input, vec![])
}

/// An option as a person reads it; none for one that is no simple value.
fn option_text(choice: &Value) -> Option<String> {
    match choice {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
