//! The events of a session, for any number of readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Observer};
use bcc_runtime::program::output_piece::OutputPiece;
use serde_json::json;
use tokio::sync::broadcast;

/// How many items a reader may be behind. A reader that is further behind reads the journal.
const CAPACITY: usize = 512;

/// What readers get.
#[derive(Clone, Debug)]
pub enum FeedItem {
    /// An event was committed.
    Committed {
        /// Its number. An event that was there before is reported again when its session is resumed.
        seq: u64,
        /// Its type.
        kind: &'static str,
        /// The event as a line of JSON.
        line: Arc<str>,
    },
    /// Something that is not stored: a piece of a message or of an output.
    Live {
        /// The type of the event.
        kind: &'static str,
        /// The event as a line of JSON, without a `seq`.
        line: Arc<str>,
        /// Whether a message begins with it: a reader that comes later has not seen the beginning.
        starts: bool,
    },
    /// The session was deleted. Another one may have its id by now, and has a feed of its own.
    Deleted,
}

/// The events that the reply to a message is made of.
const IN_REPLIES: [&str; 8] = [
    "message",
    "waiting",
    "request_answered",
    "taken_back",
    "session_completed",
    "session_failed",
    "session_cancelled",
    "session_stopped",
];

/// How many of them are kept of a turn. The reply to a longer one is read from the store.
const MAX_KEPT: usize = 64;

/// An event of the last turn.
#[derive(Clone, Debug)]
pub(crate) struct KeptEvent {
    pub(crate) seq: u64,
    pub(crate) kind: &'static str,
    pub(crate) line: Arc<str>,
}

/// The events of the last turn that was begun with [`EventFeed::start_turn`].
#[derive(Debug, Default)]
struct LastTurn {
    /// The number of the last event before it; none if not all of its events are kept.
    after: Option<u64>,
    events: Vec<KeptEvent>,
}

/// Sends the events of one session to its readers.
#[derive(Debug)]
pub struct EventFeed {
    session: String,
    sender: broadcast::Sender<FeedItem>,
    last_turn: Mutex<LastTurn>,
    /// The message that is being said; none between messages.
    said: Mutex<Option<String>>,
}

impl EventFeed {
    pub(crate) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            sender: broadcast::Sender::new(CAPACITY),
            last_turn: Mutex::default(),
            said: Mutex::default(),
        }
    }

    fn last_turn(&self) -> MutexGuard<'_, LastTurn> {
        self.last_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a reply is made of from the event after this one on, and forgets what was before.
    pub(crate) fn start_turn(&self, after: u64) {
        *self.last_turn() = LastTurn { after: Some(after), events: vec![] };
    }

    /// The events between two numbers that a reply is made of; none if they are not kept.
    pub(crate) fn turn(&self, after: u64, until: u64) -> Option<Vec<KeptEvent>> {
        let turn = self.last_turn();
        turn.after.filter(|first| *first <= after)?;
        Some(turn.events.iter().filter(|event| event.seq > after && event.seq <= until).cloned().collect())
    }

    fn keep(&self, seq: u64, kind: &'static str, line: &str) {
        let mut turn = self.last_turn();
        if turn.after.is_none() || !IN_REPLIES.contains(&kind) {
            return;
        }
        if turn.events.len() >= MAX_KEPT {
            *turn = LastTurn::default();
            return;
        }
        turn.events.push(KeptEvent { seq, kind, line: line.into() });
    }

    /// What happens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<FeedItem> {
        self.sender.subscribe()
    }

    /// Tells the readers that the session was deleted.
    pub(crate) fn deleted(&self) {
        self.send(|| FeedItem::Deleted);
    }

    fn current_message(&self) -> MutexGuard<'_, Option<String>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Without readers, an item is not made.
    fn send(&self, item: impl FnOnce() -> FeedItem) {
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(item());
        }
    }
}

impl Observer for EventFeed {
    fn committed(&self, committed: &Committed<'_>) {
        let kind = committed.event.kind();
        if matches!(kind, "message" | "message_discarded" | "taken_back") {
            *self.current_message() = None;
        }
        self.keep(committed.seq, kind, committed.line);
        self.send(|| FeedItem::Committed { seq: committed.seq, kind, line: committed.line.into() });
    }

    fn can_wait(&self) -> bool {
        self.sender.receiver_count() == 0
    }

    fn delta(&self, delta: &Delta<'_>) {
        // Also without readers: one may come before the next piece.
        let starts = self.current_message().as_deref() != Some(delta.message_id);
        if starts {
            *self.current_message() = Some(delta.message_id.to_owned());
        }
        self.send(|| {
            let event = json!({ "session_id": self.session, "type": "message_delta",
                "message_id": delta.message_id, "text": delta.text });
            FeedItem::Live { kind: "message_delta", line: event.to_string().into(), starts }
        });
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        self.send(|| {
            let CellRerunPiece { r#type: kind, cell_id, effect_id, number, total, ended, .. } = piece;
            let mut event = json!({ "session_id": self.session, "type": kind, "cell_id": cell_id, "effect_id": effect_id,
                "number": number, "total": total });
            if let (Some(fields), Some(ended)) = (event.as_object_mut(), ended) {
                fields.insert("ended".to_owned(), json!(ended));
            }
            FeedItem::Live { kind, line: event.to_string().into(), starts: false }
        });
    }

    fn output(&self, output: &OutputPiece<'_>) {
        self.send(|| {
            let mut event = json!({ "session_id": self.session, "type": output.r#type, "effect_id": output.effect_id,
                "stream": output.stream, "text": output.text, "left_out": output.left_out });
            if let (Some(fields), Some(cell_id)) = (event.as_object_mut(), output.cell_id) {
                fields.insert("cell_id".to_owned(), cell_id.into());
            }
            FeedItem::Live { kind: output.r#type, line: event.to_string().into(), starts: false }
        });
    }
}
