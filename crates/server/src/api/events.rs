//! `GET /v1/sessions/{id}/events`: the events of a session as a stream (server-sent events).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bcc_engine::settings::session_nonce;
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_runtime::program::stored_event::public_line;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Instrument;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlPath, UrlQuery};
use crate::api::messages::{NewMessage, SendOptions, say};
use crate::api::reply::answer_with_key;
use crate::api::talk_events::shown_event;
use crate::live::feed::{EventFeed, FeedItem};
use crate::live::sessions::LiveSessions;
use crate::metrics::Metrics;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;

/// The number of events that are read at a time.
const PAGE: usize = 256;

/// How often the store is read for what other processes commit.
const POLL: Duration = Duration::from_secs(2);

/// How often it is checked whether a turn has ended while the server ends.
const END_POLL: Duration = Duration::from_millis(20);

/// How often a comment is sent, so that a connection that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The last event of a stream whose turn did not end as it should. A browser has an event `error` of its own.
const PROBLEM: &str = "problem";

/// An event as a reader gets it.
pub(crate) struct ReadEvent {
    /// Its number; none for what is not stored.
    pub(crate) seq: Option<u64>,
    /// Its type.
    pub(crate) kind: String,
    /// The event as a line of JSON.
    pub(crate) line: String,
    /// Whether it is the first piece of a message.
    pub(crate) starts: bool,
}

/// What tells a session from another one that has its id after it was deleted.
#[derive(PartialEq, Eq)]
struct SessionIdentity {
    started_at: String,
    nonce: Option<String>,
}

impl SessionIdentity {
    fn of(row: &SessionRow) -> Self {
        Self { started_at: row.started_at.clone(), nonce: session_nonce(&row.settings) }
    }
}

/// Reads the events of a session one after the other: first those in the store, then those that happen.
pub(crate) struct EventReader {
    store: Arc<dyn Store>,
    sessions: Arc<LiveSessions>,
    id: String,
    /// Which session with this id is read; any one if not set.
    identity: Option<SessionIdentity>,
    /// When it was last checked whether it is still that one.
    checked_at: Instant,
    /// What arrived, and is given after the next such check.
    arrived: Option<FeedItem>,
    /// Kept, so that the session goes on to send its events to it.
    _feed: Arc<EventFeed>,
    items: Receiver<FeedItem>,
    /// The number of the last event that was given.
    last: u64,
    /// Whether the store may have more events than were given.
    is_behind: bool,
    /// Whether nothing has arrived for a while.
    is_polled: bool,
    /// Whether the last item of the feed is the last event that was given: what is not stored belongs there then.
    is_live: bool,
    ready: VecDeque<ReadEvent>,
    /// Tells the number of the last event that is wanted, if the stream has an end.
    end: Option<oneshot::Receiver<Result<u64, Problem>>>,
    until: Option<u64>,
    ends_with_session: bool,
    role: AccessRole,
    ending: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
}

/// What a reader that has everything waits for.
enum Happened {
    Item(Result<FeedItem, RecvError>),
    /// With the number of the last event of the turn, unless it failed.
    TurnEnded(Result<u64, Option<Problem>>),
    /// The server ends, and no turn of the session runs here any more.
    ServerEnds,
    /// Another process may have committed something.
    Poll,
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.metrics.streams.dec();
    }
}

impl EventReader {
    /// A reader of the events after this one that somebody with this role may see.
    pub(crate) fn new(state: &ServerState, id: &str, role: AccessRole, after: u64) -> Self {
        let feed = state.sessions.feed(id);
        state.metrics.streams.inc();
        Self {
            store: Arc::clone(state.sessions.store()),
            sessions: Arc::clone(&state.sessions),
            id: id.to_owned(),
            identity: None,
            checked_at: Instant::now(),
            arrived: None,
            items: feed.subscribe(),
            _feed: feed,
            last: after,
            is_behind: true,
            is_polled: false,
            is_live: false,
            ready: VecDeque::new(),
            end: None,
            until: None,
            ends_with_session: false,
            role,
            ending: state.sessions.ending(),
            metrics: Arc::clone(&state.metrics),
        }
    }

    /// Ends with the session, or after this event if the session is over already.
    pub(crate) fn end_with_session(&mut self, until: Option<u64>) {
        self.until = until;
        self.ends_with_session = true;
    }

    fn push(&mut self, seq: Option<u64>, kind: &str, line: &str, starts: bool) {
        if let Some(seq) = seq {
            self.last = seq;
            if is_end(kind) && self.ends_with_session {
                self.until.get_or_insert(seq);
            }
        }
        if let Some(line) = shown_event(self.role, kind, line) {
            self.ready.push_back(ReadEvent { seq, kind: kind.to_owned(), line: line.into_owned(), starts });
        }
    }

    async fn read_store(&mut self) -> Result<(), Problem> {
        let rows = self.store.journal(&self.id, self.last, PAGE).await?;
        self.is_behind = rows.len() == PAGE;
        self.is_live &= rows.is_empty();
        // A session that was deleted tells nothing any more, and these events may be those of another one.
        if (std::mem::take(&mut self.is_polled) || !rows.is_empty()) && self.is_deleted().await? {
            self.is_behind = false;
            self.until = Some(self.last);
            return Ok(());
        }
        for row in rows {
            if self.until.is_some_and(|until| row.seq > until) {
                break;
            }
            self.push(Some(row.seq), &row.kind, &public_line(&row.body), false);
        }
        Ok(())
    }

    /// Whether the session was deleted, also if another one has its id.
    async fn is_deleted(&mut self) -> Result<bool, Problem> {
        let row = self.store.session(&self.id).await?;
        self.checked_at = Instant::now();
        Ok(row.is_none_or(|row| self.identity.as_ref().is_some_and(|own| *own != SessionIdentity::of(&row))))
    }

    /// The next event; none at the end of the stream. Nothing is lost if it is dropped while it waits.
    pub(crate) async fn next(&mut self) -> Option<ReadEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.until.is_some_and(|until| self.last >= until) {
                return None;
            }
            if self.is_behind {
                if let Err(problem) = self.read_store().await {
                    // The client connects again, with the number of the last event that it got.
                    tracing::warn!(session = %self.id, error = %problem.detail(), "a stream of events ends");
                    return None;
                }
                continue;
            }
            // Another process may have deleted the session, and this one may run another with its id.
            if self.arrived.is_some() {
                match self.is_deleted().await {
                    Ok(false) => {}
                    Ok(true) => return None,
                    // What arrived was sent by the session of this process.
                    Err(problem) => {
                        tracing::warn!(session = %self.id, error = %problem.detail(), "it is not known whether the session was deleted");
                        self.checked_at = Instant::now();
                    }
                }
            }
            let happened = match self.arrived.take() {
                Some(item) => Happened::Item(Ok(item)),
                None => self.happens().await,
            };
            match happened {
                Happened::Item(Ok(item)) if self.checked_at.elapsed() >= POLL => self.arrived = Some(item),
                Happened::Item(Ok(FeedItem::Deleted)) if self.end.is_none() => return None,
                // The end of the turn says what happened.
                Happened::Item(Ok(FeedItem::Deleted)) => {}
                Happened::Item(Ok(FeedItem::Committed { seq, kind, line })) if seq == self.last + 1 => {
                    self.push(Some(seq), kind, &line, false);
                    self.is_live = true;
                }
                Happened::Item(Ok(FeedItem::Committed { seq, .. })) => {
                    self.is_behind = seq > self.last;
                    self.is_live = seq == self.last;
                }
                Happened::Item(Ok(FeedItem::Live { kind, line, starts })) if self.is_live => {
                    self.push(None, kind, &line, starts);
                }
                // It belongs before an event that was given.
                Happened::Item(Ok(FeedItem::Live { .. })) => {}
                Happened::Item(Err(RecvError::Lagged(_))) => self.is_behind = true,
                Happened::Poll => (self.is_behind, self.is_polled) = (true, true),
                Happened::Item(Err(RecvError::Closed)) => return None,
                Happened::TurnEnded(until) => {
                    self.end = None;
                    // If the turn failed, the stream ends with what is there, and with the reason.
                    self.until = Some(*until.as_ref().unwrap_or(&self.last));
                    self.is_behind = until.is_ok();
                    if let Err(Some(problem)) = until {
                        let line = problem.to_json();
                        self.ready.push_back(ReadEvent { seq: None, kind: PROBLEM.to_owned(), line, starts: false });
                    }
                }
                Happened::ServerEnds => {
                    // The last events of turns that end now come before the end of the stream.
                    let last = self.store.session(&self.id).await.ok().flatten().map(|row| row.last_seq);
                    self.until = Some(last.unwrap_or(self.last));
                    self.is_behind = last.is_some();
                }
            }
        }
    }

    async fn happens(&mut self) -> Happened {
        // The stream of a turn ends with it, also while the server ends.
        let is_of_turn = self.end.is_some();
        let end = async {
            match self.end.as_mut() {
                Some(end) => end.await.map_or(Err(None), |ended| ended.map_err(Some)),
                None => std::future::pending().await,
            }
        };
        let ending = async {
            let _ = self.ending.wait_for(|is_ending| *is_ending).await;
            while self.sessions.runs_turn(&self.id) {
                tokio::time::sleep(END_POLL).await;
            }
        };
        tokio::select! {
            // What was said in a turn comes before its end.
            biased;
            item = self.items.recv() => Happened::Item(item),
            ended = end => Happened::TurnEnded(ended),
            () = ending, if !is_of_turn => Happened::ServerEnds,
            () = tokio::time::sleep(POLL) => Happened::Poll,
        }
    }

    fn into_response(self) -> Response {
        let events = stream::unfold(self, async |mut reader| {
            let event = reader.next().await?;
            let sent = SseEvent::default().event(&event.kind).data(&event.line);
            let sent = match event.seq {
                Some(seq) => sent.id(seq.to_string()),
                None => sent,
            };
            Some((Ok(sent), reader))
        });
        stream_response(events)
    }
}

/// A response of server-sent events.
pub(crate) fn stream_response(events: impl Stream<Item = Result<SseEvent, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Whether an event is the last one of a session.
fn is_end(kind: &str) -> bool {
    matches!(kind, "session_completed" | "session_failed" | "session_cancelled")
}

/// The headers of a request for events, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described; the header is read by hand, because its name is not that of a field")]
struct ReaderHeaders {
    /// The number of the last event that the client has.
    #[param(rename = "Last-Event-ID", required = false)]
    last_event_id: u64,
}

/// An event of a stream, for the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only described; events are written as lines")]
struct StreamedEvent {
    /// The number of the event; none for what is not stored.
    #[schema(required = false)]
    id: String,
    /// Its type.
    event: String,
    /// The event as JSON.
    data: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The number of the last event that the client has; the header `Last-Event-ID` counts before it.
    #[serde(default)]
    after: u64,
}

/// Streams the events of a session (server-sent events).
///
/// `id` is the number of the event, `event` its type, `data` the event as JSON.
/// A client that reconnects with `Last-Event-ID` gets every event once, from any server on the same store. 204 says that the session is
/// over and has no further events.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/events",
    tag = "sessions",
    params(
        ("id" = String, Path, description = "The session"),
        ReaderHeaders,
        EventsQuery,
    ),
    responses(
        (status = 200, description = "Events", body = StreamedEvent, content_type = "text/event-stream"),
        (status = 204, description = "The session is over, and the client has all its events"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_events(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<EventsQuery>,
) -> Result<Response, Problem> {
    let after = last_event(&headers, query)?;
    let mut reader = EventReader::new(&state, &id, caller.role, after);
    let row = state.sessions.store().session(&id).await?.ok_or_else(|| Problem::no_session(&id))?;
    let is_over = SessionStatus::parse(&row.status).is_some_and(SessionStatus::is_final);
    if is_over && after >= row.last_seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // There is no such event yet: what happens from now on is told.
    reader.last = reader.last.min(row.last_seq);
    reader.identity = Some(SessionIdentity::of(&row));
    reader.end_with_session(is_over.then_some(row.last_seq));
    Ok(reader.into_response())
}

/// The number of the last event that a client has.
pub(crate) fn last_event(headers: &HeaderMap, query: EventsQuery) -> Result<u64, Problem> {
    let in_header = headers.get("last-event-id").map(|value| value.to_str().ok()?.trim().parse().ok());
    // Numbers of events are those of the store: signed.
    let is_number = |after: &u64| i64::try_from(*after).is_ok();
    let invalid = || Problem::invalid(msg!("`Last-Event-ID` must be the number of an event"));
    let query = Some(query.after).filter(is_number).ok_or_else(invalid)?;
    in_header.unwrap_or(Some(query)).filter(is_number).ok_or_else(invalid)
}

/// The events of one turn, from the message on.
pub(crate) async fn turn_stream(
    state: ServerState,
    id: String,
    caller: ApiCaller,
    message: NewMessage,
    key: Option<String>,
    language: Language,
) -> Result<Response, Problem> {
    let (accepted, mut answered) = mpsc::channel(1);
    let (end, ended) = oneshot::channel();
    // Subscribed before the turn begins, so that no piece of a message is missed.
    let mut reader = EventReader::new(&state, &id, caller.role, 0);
    let (turn_state, turn_id) = (state.clone(), id.clone());
    let may_decide = caller.role >= AccessRole::Decide;
    let options = SendOptions { key: key.clone(), accepted: Some(accepted), may_decide };
    // In a task of its own: a client that leaves does not change what is answered to a repeated message.
    let saying = async move {
        let said = say(&turn_state, &turn_id, &message, options).await;
        let directory = &turn_state.sessions.engine().project().directory;
        let shown = said.map_err(|problem| problem.in_language(language).in_project(directory));
        drop(end.send(shown.map(|reply| reply.last_seq)));
    };
    tokio::spawn(saying.in_current_span());
    let after = match answered.recv().await {
        Some(after) => {
            // All events of the turn come through the feed.
            reader.is_behind = false;
            after
        }
        // It was not accepted now: either it was before, or there is a problem.
        None => {
            let said = ended.await.map_err(|_| Problem::failure(&msg!("the turn has ended without a result")))?;
            let until = said?;
            reader.until = Some(until);
            let store = state.sessions.store().as_ref();
            let earlier = match key {
                Some(key) => answer_with_key(store, &id, &key).await?,
                None => None,
            };
            // What followed from a decision about an effect is not known by its key.
            reader.last = earlier.map_or(until, |answer| answer.seq - 1);
            return Ok(reader.into_response());
        }
    };
    reader.last = after;
    reader.end = Some(ended);
    Ok(reader.into_response())
}
