//! What a turn gave: its messages and what the session waits for.

use bcc_engine::taken_back::TakenBackEvents;
use bcc_runtime::program::event::Speaker;
use bcc_runtime::program::flow::WaitReason;
use bcc_runtime::program::stored_event::public_line;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::SessionRow;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::access::AccessRole;
use crate::api::first_rest::{Rest, first_rest};
use crate::live::command::EndedTurn;
use crate::live::feed::EventFeed;
use crate::problem::{Problem, ProblemKind};
use bcc_lang::message::msg;

/// The number of events that are read at a time.
const PAGE: usize = 256;

/// The number of events among which the one that asks for a request is looked for.
const WAITING_AFTER: usize = 8;

/// The number of messages among which the last answer is looked for.
const TAIL: usize = 64;

/// The state of a session after a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnReply {
    /// The id of the session.
    pub(crate) id: String,
    /// `running`, `waiting_input`, `waiting_approval`, `waiting_time`, `completed`, `failed`, `stopped` or `cancelled`.
    pub(crate) status: String,
    /// What was said to the person, in order.
    pub(crate) messages: Vec<SaidMessage>,
    /// What the session waits for. The prompt of a decision is for those who may decide.
    pub(crate) waiting: Option<WaitingFor>,
    /// The number of the last event: `Last-Event-ID` for a stream that goes on from here.
    pub(crate) last_seq: u64,
}

impl TurnReply {
    /// Whether the session waits for the person in the conversation, or for nothing.
    pub(crate) fn waits_for_person(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| is_for_person(&waiting.r#for))
    }

    /// What a caller with this role may see of it.
    pub(crate) fn shown_to(mut self, role: AccessRole) -> Self {
        let waiting =
            self.waiting.as_mut().filter(|waiting| role < AccessRole::Decide && !is_for_person(&waiting.r#for));
        waiting.into_iter().for_each(|waiting| waiting.prompt.clear());
        self
    }
}

/// Whether the person in the conversation may read the prompt of what a session waits for: that of a decision is for those who decide.
pub(crate) fn is_for_person(waits_for: &str) -> bool {
    waits_for == WaitReason::Input.name()
}

/// A message to the person.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SaidMessage {
    pub(crate) message_id: String,
    pub(crate) text: String,
}

/// What a session waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct WaitingFor {
    /// `input`, `approval`, `form`, `interrupted_effect` or `time`.
    pub(crate) r#for: String,
    pub(crate) prompt: String,
    /// Of an answer: its id, which can be sent with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer_id: Option<String>,
    /// Of a decision: its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

impl WaitingFor {
    /// The status of a session that waits for this.
    fn status(&self) -> SessionStatus {
        match self.r#for.as_str() {
            "approval" | "form" => SessionStatus::WaitingApproval,
            "time" => SessionStatus::WaitingTime,
            _ => SessionStatus::WaitingInput,
        }
    }

    fn of(event: &Value) -> Self {
        let text = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            r#for: text("for").unwrap_or_default(),
            prompt: text("prompt").unwrap_or_default(),
            answer_id: text("answer_id"),
            request_id: text("request_id"),
        }
    }
}

/// The messages and the question of the events after `after`, up to `until`.
#[derive(Default)]
struct Collected {
    /// With the numbers of their events.
    said: Vec<(u64, SaidMessage)>,
    taken_back: Vec<Value>,
    waiting: Option<WaitingFor>,
}

impl Collected {
    /// Adds an event; `line` is its public form.
    fn add(&mut self, seq: u64, kind: &str, line: &str) -> Result<(), Problem> {
        match kind {
            "message" => {
                let event = public_event(line)?;
                let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                if text("role") == "ai" {
                    self.said.push((seq, SaidMessage { message_id: text("message_id"), text: text("text") }));
                }
                self.waiting = None;
            }
            "taken_back" => self.taken_back.push(public_event(line)?),
            "waiting" => self.waiting = Some(WaitingFor::of(&public_event(line)?)),
            // It may be this one that was answered, while branches wait for others.
            "request_answered" => self.waiting = None,
            "session_completed" | "session_failed" | "session_cancelled" | "session_stopped" => self.waiting = None,
            _ => {}
        }
        Ok(())
    }

    /// The messages that were not taken back, and what the session asked for last. Branches ask for several things, and the session waits for
    /// another one if the status says so.
    fn end(self) -> (Vec<SaidMessage>, Option<WaitingFor>) {
        let taken_back = TakenBackEvents::of(self.taken_back);
        let said = self.said.into_iter().filter(|(seq, _)| !taken_back.contains(*seq));
        (said.map(|(_, message)| message).collect(), self.waiting)
    }
}

async fn collect(
    store: &dyn Store,
    id: &str,
    after: u64,
    until: u64,
) -> Result<(Vec<SaidMessage>, Option<WaitingFor>), Problem> {
    let mut collected = Collected::default();
    let mut at = after;
    'pages: loop {
        let rows = store.journal(id, at, PAGE).await?;
        let Some(last) = rows.last() else { break };
        at = last.seq;
        for row in rows {
            if row.seq > until {
                break 'pages;
            }
            collected.add(row.seq, &row.kind, &public_line(&row.body))?;
        }
    }
    Ok(collected.end())
}

fn public_event(line: &str) -> Result<Value, Problem> {
    serde_json::from_str(line).map_err(|error| Problem::failure(&msg!("an event in the store cannot be read: {error}")))
}

/// A stored event in its public form.
pub(crate) fn parsed(body: &str) -> Result<Value, Problem> {
    public_event(&public_line(body))
}

/// The reply after a turn that has just ended in this process, from what its session has told; none if that is not kept any more.
pub(crate) fn reply_from(feed: &EventFeed, id: &str, turn: EndedTurn) -> Option<Result<TurnReply, Problem>> {
    let events = feed.turn(turn.after, turn.until)?;
    let mut collected = Collected::default();
    let added = events.iter().try_for_each(|event| collected.add(event.seq, event.kind, &event.line));
    let (messages, waiting) = collected.end();
    let waiting = waiting.filter(|waiting| waiting.status() == turn.status);
    if added.is_ok() && waiting.is_none() && turn.status.is_waiting() {
        // It waits for what an earlier turn, or another branch, asked.
        return None;
    }
    let status = turn.status.name().to_owned();
    Some(added.map(|()| TurnReply { id: id.to_owned(), status, messages, waiting, last_seq: turn.until }))
}

/// The reply after turns that have ended.
pub(crate) async fn reply_of(store: &dyn Store, id: &str, turn: EndedTurn) -> Result<TurnReply, Problem> {
    let (messages, waiting) = collect(store, id, turn.after, turn.until).await?;
    let waiting = match waiting.filter(|waiting| waiting.status() == turn.status) {
        None if turn.status.is_waiting() => {
            open_waiting(store, id, turn.status, turn.until).await?.as_ref().map(WaitingFor::of)
        }
        waiting => waiting,
    };
    Ok(TurnReply { id: id.to_owned(), status: turn.status.name().to_owned(), messages, waiting, last_seq: turn.until })
}

/// The state of a session that is not asked anything: what was said since the last answer, and what it waits for.
pub(crate) async fn state_of(store: &dyn Store, row: SessionRow) -> Result<TurnReply, Problem> {
    let tail = store.messages_tail(&row.id, TAIL).await?;
    let answer = tail.iter().rev().find(|message| message.role == Speaker::User.name());
    // The id of an answer has the number of its event.
    let after = match answer.and_then(|answer| answer.message_id.strip_prefix('u')?.parse().ok()) {
        Some(seq) => seq,
        None if tail.len() < TAIL => 0,
        None => row.last_seq.saturating_sub(PAGE as u64),
    };
    let (messages, _) = collect(store, &row.id, after, row.last_seq).await?;
    let waiting = match SessionStatus::parse(&row.status).filter(|status| status.is_waiting()) {
        Some(status) => open_waiting(store, &row.id, status, row.last_seq).await?.as_ref().map(WaitingFor::of),
        None => None,
    };
    Ok(TurnReply { id: row.id, status: row.status, messages, waiting, last_seq: row.last_seq })
}

/// The event with what a session with this status waited for after the event `until`: the newest question or decision that was open.
/// Branches ask at the same time, and the newest can be answered before the others.
pub(crate) async fn open_waiting(
    store: &dyn Store,
    id: &str,
    status: SessionStatus,
    until: u64,
) -> Result<Option<Value>, Problem> {
    let Some(newest) = store.last_by_kind(id, "waiting").await? else { return Ok(None) };
    if newest.seq <= until {
        let event = parsed(&newest.body)?;
        let is_answered = match text_of(&event, "request_id") {
            Some(asked) => {
                answered_after(store, id, newest.seq).await?.iter().any(|(seq, id)| *seq <= until && *id == asked)
            }
            None => false,
        };
        if !is_answered && WaitingFor::of(&event).status() == status {
            return Ok(Some(event));
        }
    }
    let later: Vec<String> = answered_after(store, id, until).await?.into_iter().map(|(_, asked)| asked).collect();
    let mut open: Vec<(u64, String)> = Vec::new();
    for row in store.requests(id).await?.into_iter().filter(|row| row.answered_at.is_none() || later.contains(&row.id))
    {
        // The number in the id of what a branch asks is that of the event before it.
        let number = row.id.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()).parse();
        open.extend(number.ok().filter(|number| *number < until).map(|number| (number, row.id)));
    }
    open.sort();
    let mut newest_open = None;
    for (number, asked) in open.iter().rev() {
        for row in store.journal_by_kind(id, "waiting", number.saturating_sub(1), WAITING_AFTER).await? {
            let event = parsed(&row.body)?;
            if row.seq > until || text_of(&event, "answer_id").as_ref() != Some(asked) {
                continue;
            }
            if WaitingFor::of(&event).status() == status {
                return Ok(Some(event));
            }
            newest_open = newest_open.or(Some(event));
        }
    }
    Ok(newest_open)
}

fn text_of(event: &Value, name: &str) -> Option<String> {
    event.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The requests that were answered after an event, each with the number of the event that says so.
async fn answered_after(store: &dyn Store, id: &str, mut after: u64) -> Result<Vec<(u64, String)>, Problem> {
    let mut answered = Vec::new();
    loop {
        let rows = store.journal_by_kind(id, "request_answered", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(answered) };
        after = last.seq;
        for row in rows {
            answered.extend(text_of(&parsed(&row.body)?, "request_id").map(|request| (row.seq, request)));
        }
    }
}

/// An answer that was accepted before.
pub(crate) struct EarlierAnswer {
    /// The number of its event.
    pub(crate) seq: u64,
    /// The number of the answer that came next; the newest event if none did.
    pub(crate) until: u64,
    pub(crate) text: String,
}

/// The accepted answer with this key. Only for a key that was used before: all messages are read. A session that was made from another
/// one has the messages of that one, whose keys are not its own: the last answer with the key is meant.
pub(crate) async fn answer_with_key(store: &dyn Store, id: &str, key: &str) -> Result<Option<EarlierAnswer>, Problem> {
    let mut found: Option<EarlierAnswer> = None;
    let mut after = 0;
    loop {
        let rows = store.journal_by_kind(id, "message", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = last.seq;
        for row in rows {
            let event = parsed(&row.body)?;
            let text = |name: &str| event.get(name).and_then(Value::as_str);
            if text("role") != Some("user") {
                continue;
            }
            if let Some(found) = found.as_mut().filter(|found| found.until == u64::MAX) {
                found.until = row.seq - 1;
            }
            if text("answer_id") == Some(key) {
                let text = text("text").unwrap_or_default().to_owned();
                found = Some(EarlierAnswer { seq: row.seq, until: u64::MAX, text });
            }
        }
    }
}

/// Whether an accepted answer was taken back since.
pub(crate) async fn is_taken_back(store: &dyn Store, id: &str, answer: &EarlierAnswer) -> Result<bool, Problem> {
    let mut after = answer.seq;
    loop {
        let rows = store.journal_by_kind(id, "taken_back", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(false) };
        after = last.seq;
        let events = rows.iter().map(|row| parsed(&row.body)).collect::<Result<_, _>>()?;
        if TakenBackEvents::of(events).contains(answer.seq) {
            return Ok(true);
        }
    }
}

/// The reply to an answer that is sent again: the same as the first time.
pub(crate) async fn earlier_reply(store: &dyn Store, id: &str, answer: &EarlierAnswer) -> Result<TurnReply, Problem> {
    let row = store.session(id).await?.ok_or_else(|| Problem::no_session(id))?;
    let end = answer.until.min(row.last_seq);
    if let Some(Rest { status, last_seq }) = first_rest(store, &row, answer.seq, end).await? {
        return reply_of(store, id, EndedTurn { after: answer.seq, until: last_seq, status }).await;
    }
    // What the session says after a decision is not part of the reply. A turn that had stopped is over when it has gone on.
    let until = rest_before_decision(store, id, answer.seq, end).await?.unwrap_or(end);
    let (messages, waiting) = collect(store, id, answer.seq, until).await?;
    let status = match &waiting {
        _ if until == row.last_seq => row.status,
        Some(waiting) => waiting.status().name().to_owned(),
        None => SessionStatus::WaitingInput.name().to_owned(),
    };
    Ok(TurnReply { id: id.to_owned(), status, messages, waiting, last_seq: until })
}

/// The same for a session without its states, from its events: the number of the event with which a turn rested before a decision, or a
/// time, made the session go on; none if nothing did. In a `parallel`, other branches may go on after such an event: then it is none.
async fn rest_before_decision(store: &dyn Store, id: &str, after: u64, until: u64) -> Result<Option<u64>, Problem> {
    let answered = store.journal_by_kind(id, "request_answered", after, 1).await?;
    if answered.first().is_none_or(|answered| answered.seq > until) {
        return Ok(None);
    }
    let (mut at, mut rest) = (after, None);
    loop {
        let rows = store.journal(id, at, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        at = last.seq;
        for row in rows {
            match row.kind.as_str() {
                _ if row.seq > until => return Ok(None),
                "waiting" => rest = Some(row.seq),
                "request_answered" if rest.is_some() => return Ok(rest),
                // What happens while the session rests.
                "session_resumed" | "model_call" | "monitor_feedback" => {}
                _ => rest = None,
            }
        }
    }
}

/// What a session said before the first answer.
pub(crate) async fn opening_of(store: &dyn Store, row: SessionRow) -> Result<TurnReply, Problem> {
    let first = store.messages(&row.id, 0, PAGE).await?.into_iter().find(|said| said.role == Speaker::User.name());
    // The id of an answer has the number of its event.
    match first.and_then(|answer| answer.message_id.strip_prefix('u')?.parse::<u64>().ok()) {
        Some(seq) => {
            let opening = EarlierAnswer { seq: 0, until: seq.saturating_sub(1), text: String::new() };
            earlier_reply(store, &row.id, &opening).await
        }
        None => state_of(store, row).await,
    }
}

/// The error for a key that was used with another text.
pub(crate) fn key_reused() -> Problem {
    Problem::new(ProblemKind::KeyReused, msg!("this `Idempotency-Key` was used before, with another body"))
        .with_help("use a new key for each message, and the same key only to send the same message again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, JournalRow, NewSessionRow, RequestRow};
    use serde_json::json;

    /// A session in whose branches these were asked, one after the other, and of which these were answered.
    async fn asked(waiting: &[(&str, &str)], answered: &[&str]) -> MemoryStore {
        let store = MemoryStore::default();
        let events = waiting.iter().map(|(id, kind)| {
            let request = (*kind != "interrupted_effect").then_some(*id);
            ("waiting", json!({ "for": kind, "prompt": id, "answer_id": id, "request_id": request }))
        });
        let events = events.chain(answered.iter().map(|id| ("request_answered", json!({ "request_id": id }))));
        let journal = events.enumerate().map(|(number, (kind, event))| JournalRow {
            seq: number as u64 + 1,
            kind: kind.to_owned(),
            body: event.to_string(),
            ..JournalRow::default()
        });
        let request = |(id, kind): &(&str, &str)| RequestRow {
            id: (*id).to_owned(),
            kind: (*kind).to_owned(),
            answered_at: answered.contains(id).then(|| "2026-11-30T06:00:00Z".to_owned()),
            ..RequestRow::default()
        };
        let requests_put = waiting.iter().map(request).collect();
        let first = Commit { journal: journal.collect(), requests_put, ..Commit::default() };
        let new = NewSessionRow { id: "s".to_owned(), ..NewSessionRow::default() };
        store.create(&new, &[], &first).await.unwrap();
        store
    }

    #[tokio::test]
    async fn a_session_waits_for_the_newest_that_is_open_and_fits_its_status() {
        use SessionStatus::{WaitingApproval, WaitingInput};
        let (first, second) = (("r1", "approval"), ("r2", "approval"));
        let question = ("w2", "interrupted_effect");
        for (waiting, answered, status, expected) in [
            ([first, second], vec![], WaitingApproval, Some("r2")),
            ([first, second], vec!["r2"], WaitingApproval, Some("r1")),
            ([first, second], vec!["r1", "r2"], WaitingApproval, None),
            ([first, question], vec![], WaitingInput, Some("w2")),
            ([first, question], vec!["w2"], WaitingApproval, Some("r1")),
            ([("w1", "interrupted_effect"), second], vec![], WaitingInput, Some("w1")),
        ] {
            let store = asked(&waiting, &answered).await;
            let found = open_waiting(&store, "s", status, u64::MAX).await.unwrap_or_else(|_| panic!("{waiting:?}"));
            let found = found.as_ref().and_then(|event| event["prompt"].as_str());
            assert_eq!(found, expected, "{waiting:?}, answered: {answered:?}");
        }
    }
    #[tokio::test]
    async fn what_was_answered_or_asked_later_does_not_count() {
        let store = asked(&[("r1", "approval"), ("r2", "approval")], &["r2", "r1"]).await;
        // After the second question; after the answer to it; after both.
        for (until, expected) in [(2, Some("r2")), (3, Some("r1")), (4, None)] {
            let found = open_waiting(&store, "s", SessionStatus::WaitingApproval, until).await;
            let found = found.unwrap_or_else(|_| panic!("{until}"));
            assert_eq!(found.as_ref().and_then(|event| event["prompt"].as_str()), expected, "{until}");
        }
    }
}
