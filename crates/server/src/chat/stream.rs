//! A reply in pieces, while the session says it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use futures_util::stream;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use crate::chat::completions::{ChatReply, Unanswered, remember, speak};
use crate::chat::conversation::ChatTurn;
use crate::chat::error::ChatErrorBody;
use crate::chat::place::{ChatPlace, ChatTask};
use crate::chat::response::{BETWEEN, ChunkDelta, CompletionHead, content_of, usage_of};
use crate::live::feed::FeedItem;
use crate::problem::Problem;
use crate::state::ServerState;

/// How many pieces wait for a slow client. A client that is slower still slows down nobody: it gets larger pieces.
const MAX_WAITING: usize = 64;

const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Puts together what the client has got, and what is still missing.
#[derive(Debug, Default)]
struct SpokenText {
    /// All that was sent.
    sent: String,
    /// The messages that are complete.
    said: String,
    /// The message that is being said, and where it begins in `sent`.
    current: Option<(String, usize)>,
}

impl SpokenText {
    /// Begins a message. Returns what separates it from the one before.
    fn open(&mut self, message: &str) -> String {
        let between = if self.sent.is_empty() { "" } else { BETWEEN };
        self.sent.push_str(between);
        self.current = Some((message.to_owned(), self.sent.len()));
        between.to_owned()
    }

    /// A piece of a message. Returns what to send.
    fn piece(&mut self, message: &str, text: &str) -> String {
        let mut out = match &self.current {
            Some((current, _)) if current == message => String::new(),
            _ => self.open(message),
        };
        out.push_str(text);
        self.sent.push_str(text);
        out
    }

    /// The pieces of a message do not count. What was sent cannot be taken back.
    fn discard(&mut self, message: &str) {
        if self.current.as_ref().is_some_and(|(current, _)| current == message) {
            self.current = None;
        }
    }

    /// A message is complete. Returns what is missing of it.
    fn complete(&mut self, message: &str, text: &str) -> String {
        if !self.said.is_empty() {
            self.said.push_str(BETWEEN);
        }
        self.said.push_str(text);
        let so_far = match &self.current {
            Some((current, start)) if current == message => self.sent.get(*start..),
            _ => None,
        };
        let out = match so_far.and_then(|so_far| text.strip_prefix(so_far)) {
            Some(rest) => rest.to_owned(),
            None => self.open(message) + text,
        };
        // The separator is in `sent` already, if there is one.
        let new = out.strip_prefix(BETWEEN).filter(|_| self.sent.ends_with(BETWEEN)).unwrap_or(&out);
        self.sent.push_str(new);
        self.current = None;
        out
    }

    /// The turn has ended with this reply. Returns what is missing of it.
    fn end(&mut self, reply: &str) -> String {
        let missing = match reply.strip_prefix(self.said.as_str()) {
            Some(rest) => rest.to_owned(),
            // Something was said that is not part of the reply.
            None => return String::new(),
        };
        let missing = missing.strip_prefix(BETWEEN).unwrap_or(&missing).to_owned();
        if missing.is_empty() { String::new() } else { self.complete("", &missing) }
    }
}

/// Answers with the pieces of the reply.
pub(crate) async fn completion_stream(
    state: ServerState,
    turn: Arc<ChatTurn>,
    place: ChatPlace,
    head: CompletionHead,
    language: Language,
    wants_usage: bool,
) -> Result<Response, Unanswered> {
    // Subscribed before the turn begins, so that no piece is missed.
    let feed = state.sessions.feed(&place.session);
    let items = feed.subscribe();
    let (accepted, mut after) = mpsc::channel(1);
    let (end, ended) = oneshot::channel();
    // The first turn of a session begins with its first event.
    let begins = place.task == ChatTask::Begin { is_new: true };
    let (pieces, waiting) = mpsc::channel(MAX_WAITING);
    let (begun, beginning) = oneshot::channel();
    let streaming = async move {
        let mut speaker = Speaker { head, pieces, begun: Some(begun), text: SpokenText::default(), language };
        let speaking = async {
            let reply = speak(&state, &turn, &place, Some(accepted)).await;
            let _ = end.send(());
            reply
        };
        let after = async move { if begins { Some(0) } else { after.recv().await } };
        let (reply, ()) = tokio::join!(speaking, speaker.listen(items, after, ended));
        // Whoever is told that it was not answered looks for another place.
        drop((feed, place));
        match reply {
            Ok(reply) => speaker.close(&state, &turn, &reply, wants_usage).await,
            Err(why) => speaker.fail(&state, &turn, why).await,
        }
    };
    // The request ends with its stream.
    tokio::spawn(streaming.in_current_span());
    // What was not accepted is an error, and no stream.
    if let Ok(Err(why)) = beginning.await {
        return Err(why);
    }
    let events = stream::unfold(waiting, async |mut waiting: mpsc::Receiver<SseEvent>| {
        let event = waiting.recv().await?;
        Some((Ok::<_, Infallible>(event), waiting))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Sends the pieces of a reply to the client.
struct Speaker {
    head: CompletionHead,
    pieces: mpsc::Sender<SseEvent>,
    /// Learns that the turn has begun, or why it has not.
    begun: Option<oneshot::Sender<Result<(), Unanswered>>>,
    text: SpokenText,
    language: Language,
}

impl Speaker {
    /// Sends what the session says, until the turn has ended. `after` is the number of the last event before the turn.
    async fn listen(
        &mut self,
        mut items: Receiver<FeedItem>,
        after: impl Future<Output = Option<u64>>,
        mut ended: oneshot::Receiver<()>,
    ) {
        let role = ChunkDelta { role: Some("assistant"), content: Some(String::new()) };
        self.send(&self.head.chunk(role, None)).await;
        let Some(after) = after.await else { return };
        // What is said before the message is accepted belongs to another turn.
        let mut has_begun = false;
        loop {
            let item = tokio::select! {
                biased;
                item = items.recv() => item,
                _ = &mut ended => return,
            };
            match item {
                Ok(FeedItem::Committed { seq, .. }) if seq <= after => {}
                Ok(FeedItem::Committed { kind, line, .. }) => {
                    has_begun = true;
                    self.start_response();
                    self.committed(kind, &line).await;
                }
                Ok(FeedItem::Live { kind: "message_delta", line, .. }) if has_begun => self.delta(&line).await,
                // What was missed is sent at the end.
                Ok(FeedItem::Live { .. }) | Err(RecvError::Lagged(_)) => {}
                Ok(FeedItem::Deleted) | Err(RecvError::Closed) => return,
            }
        }
    }

    fn start_response(&mut self) {
        if let Some(begun) = self.begun.take() {
            // Nobody waits for it if the client has left.
            let _ = begun.send(Ok(()));
        }
    }

    async fn delta(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let out = self.text.piece(text("message_id"), text("text"));
        self.content(out).await;
    }

    async fn committed(&mut self, kind: &str, line: &str) {
        if !matches!(kind, "message" | "message_discarded") {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        if kind == "message_discarded" {
            self.text.discard(text("message_id"));
        } else if text("role") == "ai" {
            let out = self.text.complete(text("message_id"), text("text"));
            self.content(out).await;
        }
    }

    /// Says why there is no reply.
    async fn fail(&mut self, state: &ServerState, turn: &ChatTurn, why: Unanswered) {
        if let Some(begun) = self.begun.take() {
            let _ = begun.send(Err(why));
            return;
        }
        let problem = why.into_problem();
        tracing::warn!(script = %turn.script.session_id, error = %problem.detail(), "a reply was not completed");
        let shown = problem.in_language(self.language).in_project(&state.sessions.engine().project().directory);
        self.send(&ChatErrorBody::of(&shown)).await;
    }

    /// Sends what is missing, and the end.
    async fn close(&mut self, state: &ServerState, turn: &ChatTurn, reply: &ChatReply, wants_usage: bool) {
        self.start_response();
        let content = content_of(&reply.reply, self.language);
        let missing = self.text.end(&content);
        self.content(missing).await;
        // Before the client learns that it has the whole reply, and answers it.
        let sent = self.text.sent.as_str();
        let contents: &[&str] = if sent == content { &[&content] } else { &[&content, sent] };
        if let Err(problem) = remember(state, turn, reply, contents).await {
            tracing::warn!(session = %reply.reply.id, error = %problem.detail(), "a conversation is not remembered");
        }
        self.send(&self.head.chunk(ChunkDelta::default(), Some("stop"))).await;
        if wants_usage {
            let store = state.sessions.store().as_ref();
            match usage_of(store, &reply.reply.id, reply.after, reply.reply.last_seq).await {
                Ok(usage) => self.send(&self.head.usage_chunk(usage)).await,
                Err(problem) => tracing::warn!(error = %problem.detail(), "the tokens of a reply are not known"),
            }
        }
        let _ = self.pieces.send(SseEvent::default().data("[DONE]")).await;
    }

    async fn content(&self, text: String) {
        if !text.is_empty() {
            self.send(&self.head.chunk(ChunkDelta { role: None, content: Some(text) }, None)).await;
        }
    }

    async fn send(&self, piece: &impl Serialize) {
        match serde_json::to_string(piece) {
            // A client that has left gets nothing; the turn goes on.
            Ok(json) => drop(self.pieces.send(SseEvent::default().data(json)).await),
            Err(error) => drop(Problem::failure(&msg!("a piece of a reply cannot be written: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_the_reply() {
        let mut text = SpokenText::default();
        let mut out = text.complete("m1", "Hello.");
        out += &text.piece("m2", "How ");
        out += &text.piece("m2", "are");
        out += &text.complete("m2", "How are you?");
        out += &text.end("Hello.\n\nHow are you?");
        assert_eq!(out, "Hello.\n\nHow are you?");
        assert_eq!(text.sent, out);
    }

    #[test]
    fn what_was_missed_is_sent_at_the_end() {
        for pieces in [&[][..], &["He"], &["Hello."]] {
            let mut text = SpokenText::default();
            let mut out: String = pieces.iter().map(|piece| text.piece("m1", piece)).collect();
            if pieces.len() == 1 {
                out += &text.complete("m1", "Hello.");
            }
            out += &text.end("Hello.\n\nBye.");
            assert_eq!(out, "Hello.\n\nBye.", "{pieces:?}");
            assert_eq!(text.sent, out);
        }
    }

    #[test]
    fn a_discarded_message_is_followed_by_the_one_that_counts() {
        let mut text = SpokenText::default();
        let mut out = text.piece("m1", "Nonsen");
        out += &text.piece("m1.1", "Good");
        text.discard("m1");
        out += &text.complete("m1.1", "Good.");
        out += &text.end("Good.");
        assert_eq!(out, "Nonsen\n\nGood.");
        assert_eq!(text.sent, out);
    }
}
