//! The events of a session, for any number of readers.

use std::sync::Arc;

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
    },
}

/// Sends the events of one session to its readers.
#[derive(Debug)]
pub struct EventFeed {
    session: String,
    sender: broadcast::Sender<FeedItem>,
}

impl EventFeed {
    pub(crate) fn new(session: &str) -> Self {
        Self { session: session.to_owned(), sender: broadcast::Sender::new(CAPACITY) }
    }

    /// What happens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<FeedItem> {
        self.sender.subscribe()
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
        self.send(|| FeedItem::Committed {
            seq: committed.seq,
            kind: committed.event.kind(),
            line: committed.line.into(),
        });
    }

    fn can_wait(&self) -> bool {
        self.sender.receiver_count() == 0
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.send(|| {
            let event = json!({ "session_id": self.session, "type": "message_delta",
                "message_id": delta.message_id, "text": delta.text });
            FeedItem::Live { kind: "message_delta", line: event.to_string().into() }
        });
    }

    fn output(&self, output: &OutputPiece<'_>) {
        self.send(|| {
            let event = json!({ "session_id": self.session, "type": "effect_output", "effect_id": output.effect_id,
                "stream": output.stream, "text": output.text, "left_out": output.left_out });
            FeedItem::Live { kind: "effect_output", line: event.to_string().into() }
        });
    }
}
