//! `GET /v1/sessions/{id}/journal`: the stored events of a session in pages, the newest page first.

use axum::Json;
use axum::extract::State;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::program::stored_event::public_line;
use bcc_store::rows::JournalRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlPath, UrlQuery};
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// The number of events in a page, if the request names none, and the maximum.
const PAGE: usize = 500;
const MAX_PAGE: usize = 1000;

/// The size of the events of a page, unless a single one is larger.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JournalQuery {
    /// The page with the last events before this one: `before` of the page after it.
    before: Option<u64>,
    /// Only events after this one.
    #[serde(default)]
    after: u64,
    /// The number of events in a page: 500, at most 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Whether prompts and raw replies are left out: `debug_info` has `left_out` in their place.
    #[serde(default)]
    brief: bool,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JournalPage {
    /// The events in their order, each as in the stream.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Box<RawValue>>,
    /// The value of `before` for the page before; none if there are no earlier events.
    before: Option<u64>,
    /// The number of the last event of the session.
    last_seq: u64,
}

/// Reads the stored events of a session in pages, from the last one back.
///
/// Without `before`, the page has the last events. A page that would be too large has fewer events than `limit`.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/journal",
    tag = "sessions",
    params(("id" = String, Path, description = "The session"), JournalQuery),
    responses(
        (status = 200, description = "A page of events", body = JournalPage),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_journal(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<JournalQuery>,
) -> Result<Json<JournalPage>, Problem> {
    caller.require(AccessRole::Author)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::invalid(msg!("`limit` must be from 1 to {MAX_PAGE}")));
    }
    // Numbers of events are those of the store: signed.
    if [query.before.unwrap_or_default(), query.after].into_iter().any(|seq| i64::try_from(seq).is_err()) {
        return Err(Problem::invalid(msg!("`before` and `after` must be numbers of events")));
    }
    let store = state.sessions.store().as_ref();
    let row = store.session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    // Numbers of events have no gaps.
    let end = query.before.unwrap_or(u64::MAX).min(row.last_seq.saturating_add(1)).max(1);
    let start = end.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX)).max(query.after.saturating_add(1));
    let rows = match usize::try_from(end.saturating_sub(start)) {
        Ok(0) | Err(_) => vec![],
        Ok(count) => store.journal(&id, start - 1, count).await?,
    };
    let (mut events, mut bytes, mut first) = (Vec::new(), 0_usize, end);
    for row in rows.iter().rev() {
        let event = shown(row, query.brief)?;
        bytes = bytes.saturating_add(event.get().len());
        if bytes > MAX_PAGE_BYTES && !events.is_empty() {
            break;
        }
        first = row.seq;
        events.push(event);
    }
    events.reverse();
    let before = Some(first).filter(|first| *first > query.after.saturating_add(1) && !events.is_empty());
    Ok(Json(JournalPage { events, before, last_seq: row.last_seq }))
}

fn shown(row: &JournalRow, brief: bool) -> Result<Box<RawValue>, Problem> {
    let line = public_line(&row.body);
    let has_call = brief && matches!(row.kind.as_str(), "outcome" | "model_call");
    let line = if has_call { without_call(&line)? } else { line.into_owned() };
    RawValue::from_string(line).map_err(|error| unreadable(&error))
}

/// The event without the prompt and the raw reply of its call.
fn without_call(line: &str) -> Result<String, Problem> {
    let mut event = ExactValue::parse(line).map_err(|error| unreadable(&error))?;
    event.change(|event| {
        let Some(debug_info) = event.get_mut("debug_info").and_then(Value::as_object_mut) else { return };
        let (prompt, reply) = (debug_info.shift_remove("llm_prompt"), debug_info.shift_remove("llm_response"));
        if prompt.is_some() || reply.is_some() {
            debug_info.insert("left_out".to_owned(), Value::Bool(true));
        }
    });
    Ok(event.to_string())
}

fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::failure(&msg!("an event in the store cannot be read: {error}", error = error.to_string()))
}
