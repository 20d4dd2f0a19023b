//! `GET /t/TOKEN/SECRET/events`: what happens in a conversation, as far as its page shows it (server-sent events).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event as SseEvent;
use axum::response::{IntoResponse, Response};
use bcc_runtime::run::head::SessionStatus;
use bcc_store::rows::SessionRow;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::access::AccessRole;
use crate::api::body::UrlQuery;
use crate::api::events::{EventReader, EventsQuery, ReadEvent, last_event, stream_response};
use crate::problem::Problem;
use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::view::{go_on, waiting_view};
use crate::talk::visit::TalkVisit;

/// How often it is checked whether the conversation was erased, or its link revoked.
const CHECK: Duration = Duration::from_secs(5);

/// How long a browser waits before it connects again, in milliseconds.
const RETRY: u64 = 1500;

/// The events of one conversation, for one page.
struct TalkStream {
    state: ServerState,
    token: String,
    secret: String,
    row: SessionRow,
    reader: EventReader,
    checks: Interval,
    /// The message of which this reader has seen the beginning.
    said: Option<String>,
    is_revoked: bool,
    is_over: bool,
}

impl TalkStream {
    async fn next(&mut self) -> Option<SseEvent> {
        while !self.is_over {
            let event = tokio::select! {
                event = self.reader.next() => match event {
                    Some(event) => event,
                    // Perhaps because the conversation was erased.
                    None => return self.changed().await,
                },
                _ = self.checks.tick() => {
                    if let Some(change) = self.changed().await {
                        return Some(change);
                    }
                    continue;
                }
            };
            if let Some(shown) = self.shown(&event).await {
                return Some(match event.seq {
                    Some(seq) => shown.id(seq.to_string()),
                    None => shown,
                });
            }
        }
        None
    }

    /// That the conversation was erased, or its link revoked, in the meantime.
    async fn changed(&mut self) -> Option<SseEvent> {
        let visit = TalkVisit::of(&self.state, &self.token, &self.secret).await;
        let is_there = match &visit {
            Ok(visit) => self.state.sessions.store().session(&visit.talk.session).await.map(|row| row.is_some()),
            Err(_) => Ok(true),
        };
        match (visit, is_there) {
            (Ok(_), Ok(false)) | (Err(TalkErrorKind::Withdrawn | TalkErrorKind::Deleted), _) => {
                self.is_over = true;
                Some(sent("gone", &json!({})))
            }
            (Ok(visit), _) if visit.link.revoked_at.is_some() && !self.is_revoked => {
                self.is_revoked = true;
                Some(sent("revoked", &json!({})))
            }
            // A store that cannot be read at the moment changes nothing.
            _ => None,
        }
    }

    /// The event as the page gets it; none if it does not.
    async fn shown(&mut self, event: &ReadEvent) -> Option<SseEvent> {
        let value: Value = serde_json::from_str(&event.line).ok()?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let id = text("message_id");
        match event.kind.as_str() {
            "message" => {
                self.said = None;
                // The key by which the tab that sent an answer recognizes it.
                let key = text("answer_id").strip_prefix("key:");
                let own = text("role") == "user";
                Some(sent("message", &json!({ "id": id, "own": own, "text": text("text"), "key": key })))
            }
            "message_delta" => {
                if event.starts {
                    self.said = Some(id.to_owned());
                }
                // Without its beginning, a piece would be the middle of a word.
                let is_whole = self.said.as_deref() == Some(id);
                is_whole.then(|| sent("piece", &json!({ "id": id, "text": text("text") })))
            }
            "message_discarded" => {
                self.said = None;
                Some(sent("discard", &json!({ "id": id })))
            }
            "taken_back" => Some(sent("taken_back", &json!({}))),
            "waiting" => {
                let waiting = waiting_view(&self.state, &self.row, &value).await;
                Some(sent("waiting", &serde_json::to_value(waiting).ok()?))
            }
            "session_completed" => Some(sent("end", &json!({ "status": "completed" }))),
            "session_failed" => Some(sent("end", &json!({ "status": "failed" }))),
            "session_cancelled" => Some(sent("end", &json!({ "status": "cancelled" }))),
            "session_stopped" => Some(sent("stopped", &json!({}))),
            "session_resumed" => Some(sent("running", &json!({}))),
            _ => None,
        }
    }
}

fn sent(kind: &str, data: &Value) -> SseEvent {
    SseEvent::default().event(kind).data(data.to_string())
}

pub(crate) async fn events(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    headers: HeaderMap,
    query: Result<UrlQuery<EventsQuery>, Problem>,
) -> Result<Response, TalkErrorKind> {
    let UrlQuery(query) = query?;
    let after = last_event(&headers, query)?;
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    let id = visit.talk.session.as_str();
    // Subscribed before the store is read, so that nothing is missed.
    let mut reader = EventReader::new(&state, id, AccessRole::Talk, after);
    let row = state.sessions.store().session(id).await?.ok_or(TalkErrorKind::Deleted)?;
    let status = SessionStatus::parse(&row.status);
    if status == Some(SessionStatus::Running) && visit.link.revoked_at.is_none() {
        // The browser has connected again, to a server that was started in the meantime.
        go_on(&state, id).await;
    }
    let is_over = status.is_some_and(SessionStatus::is_final);
    if is_over && after >= row.last_seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    reader.end_with_session(is_over.then_some(row.last_seq));
    let mut checks = interval(CHECK);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_revoked = visit.link.revoked_at.is_some();
    let talk = TalkStream { state, token, secret, row, reader, checks, said: None, is_revoked, is_over: false };
    let retry = stream::once(async { Ok(SseEvent::default().retry(Duration::from_millis(RETRY)).comment("open")) });
    let events = stream::unfold(talk, async |mut talk| {
        let event = talk.next().await?;
        Some((Ok::<_, Infallible>(event), talk))
    });
    Ok(stream_response(futures_util::StreamExt::chain(retry, events)))
}
