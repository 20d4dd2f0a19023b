//! The words of a reply, shown while it arrives and taken back when they do not count.

use serde_json::Value;

use crate::program::event::{Delta, Event};
use crate::program::turn::Turn;
use bcc_llm::model::provider::LiveObserver;
use bcc_llm::reply::live::LiveContent;
use bcc_llm::reply::read::{Reply, UnreadableReply};

/// Shows the words of a reply while it arrives.
pub(crate) struct LiveText<'a, 'b> {
    turn: &'a Turn<'b>,
    content: Option<LiveContent>,
    message_id: String,
    shown: bool,
    /// What the clock said when the first piece came.
    pub(crate) first_ms: Option<u64>,
}

impl<'a, 'b> LiveText<'a, 'b> {
    /// For a call of this turn; `live` says whether anything is shown at all.
    pub(crate) fn new(turn: &'a Turn<'b>, live: bool) -> Self {
        let content = live.then(LiveContent::new);
        Self { turn, content, message_id: turn.message_id(), shown: false, first_ms: None }
    }

    /// What was shown counts only when the whole reply could be read, says the same words, and is not refused.
    pub(crate) fn finish(mut self, reading: &Result<Reply, UnreadableReply>, refused: bool) -> String {
        let final_words = reading.as_ref().ok().and_then(|reply| reply.object.get("content")).and_then(Value::as_str);
        let shown = self.content.as_ref().map(LiveContent::shown).unwrap_or_default();
        let unsafe_after_all = reading.as_ref().is_ok_and(|reply| risk(reply).is_some());
        // White space alone is no message: something else is said in its place.
        let nothing = final_words.is_some_and(|words| words.trim().is_empty());
        if self.shown && (refused || unsafe_after_all || nothing || final_words != Some(shown)) {
            self.discard();
        }
        self.message_id
    }

    /// There will be no reply: what was shown counts for nothing.
    pub(crate) fn abandon(mut self) {
        if self.shown {
            self.discard();
        }
    }

    fn discard(&mut self) {
        let next = self.turn.message_id();
        let message_id = std::mem::replace(&mut self.message_id, next);
        self.turn.emit(Event::MessageDiscarded { message_id });
        self.shown = false;
    }
}

impl LiveObserver for LiveText<'_, '_> {
    fn text(&mut self, piece: &str) {
        if self.first_ms.is_none() {
            self.first_ms = Some(self.turn.services.clock.elapsed_ms());
        }
        let Some(content) = &mut self.content else { return };
        let words = content.push(piece);
        if !words.is_empty() {
            self.shown = true;
            let at = self.turn.services.clock.at(self.turn.last_seq + 1);
            self.turn.services.observer.delta(&Delta {
                at: &at,
                session_id: self.turn.session_id,
                r#type: "message_delta",
                message_id: &self.message_id,
                text: &words,
                location: self.turn.place,
            });
        }
    }

    fn restart(&mut self) {
        if self.content.is_some() {
            self.content = Some(LiveContent::new());
        }
        if self.shown {
            self.discard();
        }
    }
}

/// Why the words of a reply must be held back, when the reply says so itself.
pub(crate) fn risk(reply: &Reply) -> Option<String> {
    let risk = reply.object.get("safety_risk")?;
    if risk.get("detected") != Some(&Value::Bool(true)) {
        return None;
    }
    let reason = risk.get("reason").and_then(Value::as_str).or_else(|| risk.get("risk_type").and_then(Value::as_str));
    Some(reason.unwrap_or("safety_risk.detected").to_owned())
}
