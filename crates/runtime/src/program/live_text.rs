//! Shows the text of a reply while it is streamed, and retracts it if it does not count.

use serde_json::Value;

use crate::program::event::{Delta, Event};
use crate::program::turn::Turn;
use bcc_llm::model::provider::LiveObserver;
use bcc_llm::reply::live::{LiveContent, MessageField};
use bcc_llm::reply::read::{Reply, UnreadableReply};

/// Shows the text of a reply while it is streamed.
pub(crate) struct LiveText<'a, 'b> {
    turn: &'a Turn<'b>,
    content: Option<LiveContent>,
    message: MessageField,
    /// Creates the state for a new attempt.
    new: fn() -> LiveContent,
    message_id: String,
    shown: bool,
    /// The clock value when the first chunk was received.
    pub(crate) first_ms: Option<u64>,
}

impl<'a, 'b> LiveText<'a, 'b> {
    /// Creates the state for a call of this turn; `live` is whether anything is shown at all, `only_without_exit` whether the words of
    /// a reply with EXIT may not count.
    pub(crate) fn new(turn: &'a Turn<'b>, live: bool, message: MessageField, only_without_exit: bool) -> Self {
        let new = match message {
            MessageField::LlmReply => LiveContent::of_structured_actions,
            MessageField::Content if only_without_exit => LiveContent::only_without_exit,
            MessageField::Content => LiveContent::new,
        };
        let content = live.then(new);
        Self { turn, content, message, new, message_id: turn.message_id(), shown: false, first_ms: None }
    }

    /// Keeps the shown text only if the complete reply could be read, has the same text, and is not rejected. Returns the message id.
    pub(crate) fn finish(mut self, reading: &Result<Reply, UnreadableReply>, rejected: bool) -> String {
        let final_text = reading.as_ref().ok().and_then(|reply| self.message.text_in(&reply.object));
        let shown = self.content.as_ref().map(LiveContent::shown).unwrap_or_default();
        let is_unsafe = reading.as_ref().is_ok_and(|reply| risk(reply).is_some());
        // White space alone is no message: another text is sent in its place.
        let is_blank = final_text.is_some_and(|text| text.trim().is_empty());
        if self.shown && (rejected || is_unsafe || is_blank || final_text != Some(shown)) {
            self.discard();
        }
        if self.shown {
            self.turn.work().streamed.push(self.message_id.clone());
        }
        self.message_id
    }

    /// There will be no reply: discards what was shown.
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
        let text = content.push(piece);
        if !text.is_empty() {
            self.shown = true;
            let at = self.turn.services.clock.at(self.turn.last_seq + 1);
            self.turn.services.observer.delta(&Delta {
                at: &at,
                session_id: self.turn.session_id,
                r#type: "message_delta",
                message_id: &self.message_id,
                text: &text,
                location: self.turn.place,
            });
        }
    }

    fn restart(&mut self) {
        if self.content.is_some() {
            self.content = Some((self.new)());
        }
        if self.shown {
            self.discard();
        }
    }
}

/// Why the text of a reply must be held back, if the reply marks itself as unsafe.
pub(crate) fn risk(reply: &Reply) -> Option<String> {
    let risk = reply.object.get("safety_risk")?;
    if risk.get("detected") != Some(&Value::Bool(true)) {
        return None;
    }
    let reason = risk.get("reason").and_then(Value::as_str).or_else(|| risk.get("risk_type").and_then(Value::as_str));
    Some(reason.unwrap_or("safety_risk.detected").to_owned())
}

/// Whether a reply reports that the person is in danger (docs/replies.md, `crisis_signal`).
pub(crate) fn reports_crisis(reply: &Reply) -> bool {
    reply.object.get("metadata").and_then(|metadata| metadata.get("crisis_signal")) == Some(&Value::Bool(true))
}
