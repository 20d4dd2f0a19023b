//! Outside effects of actions: announced before they begin, closed after, and never begun twice without somebody's word
//! (docs/sessions.md). What becomes of an open one is decided in [`crate::program::interrupted_effects`].

use bcc_lang::message::message::Message;
use std::sync::PoisonError;

use crate::program::event::Event;
use crate::program::flow::{Announced, OpenEffect, WaitReason};
use crate::program::interrupted_effects::question;
use crate::program::location::EventLocation;
use crate::run::draft::CommitDraft;
use crate::run::head::SessionStatus;
use crate::run::session::Session;

impl Session {
    /// Whether this process announced the effect and no turn has begun it. The effects of a session that was taken up again
    /// are not due: nobody knows how far they came.
    pub(crate) fn is_due(&self, effect_id: &str) -> bool {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).contains(effect_id)
    }

    /// A turn takes the effect up: from here on it is not due, whatever becomes of the turn.
    pub(crate) fn begins(&self, effect_id: &str) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).remove(effect_id);
    }

    /// The action `key` has an outside effect, which is to begin with its next turn. That it does is committed first.
    pub(crate) fn announce(&mut self, key: &str, place: &EventLocation, announced: Announced, draft: &mut CommitDraft) {
        let Announced { kind, summary } = announced;
        let id = format!("e{}", self.last_seq + 1);
        let effect = OpenEffect { id: id.clone(), kind: kind.to_owned(), summary: summary.clone(), word: None };
        if let Some(frame) = self.frames.change(key) {
            frame.effect = Some(effect);
        }
        draft.event(place, Event::EffectStarted { effect_id: id.clone(), kind: kind.to_owned(), summary });
        self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// The outside effect of the action `key`, if one is open, is closed with the action.
    pub(crate) fn close_with(
        &mut self,
        key: &str,
        place: &EventLocation,
        summary: &'static str,
        draft: &mut CommitDraft,
    ) {
        if self.frames.get(key).is_none_or(|frame| frame.effect.is_none()) {
            return;
        }
        if let Some(effect) = self.frames.change(key).and_then(|frame| frame.effect.take()) {
            let OpenEffect { id: effect_id, kind, .. } = effect;
            self.begins(&effect_id);
            draft.event(place, Event::EffectFinished { effect_id, kind, summary: Message::word(summary) });
        }
    }

    /// Closes, in the history, the effects of actions that the session has left: by a route, when the time was up, or because
    /// it came to its end. They are told before that end.
    pub(crate) fn close_left(&mut self, draft: &mut CommitDraft) {
        let place = self.place();
        let mut left = self.frames.take_left();
        if self.status.is_final() {
            left.extend(self.frames.take_open());
        }
        for OpenEffect { id: effect_id, kind, .. } in left {
            let summary =
                if self.is_due(&effect_id) { "not started" } else { "abandoned; it is not known how far it got" };
            self.begins(&effect_id);
            draft.event_before_end(&place, Event::EffectFinished { effect_id, kind, summary: Message::word(summary) });
        }
    }

    /// Asks the person about the effect of the innermost action, which was found open. The question is no message of the
    /// conversation, and its answer is none: both would mislead every prompt that follows.
    pub(crate) fn ask_about_effect(&mut self, place: &EventLocation, draft: &mut CommitDraft) {
        let key = self.frames.leaf();
        let effect = self.frames.get(&key).and_then(|frame| frame.effect.as_ref());
        let prompt = effect.map(|effect| question(&self.program, &self.recent, effect)).unwrap_or_default();
        if let Some(effect) = self.frames.change(&key).and_then(|frame| frame.effect.as_mut()) {
            effect.word = None;
        }
        // An id that no answer of the conversation has: those are counted.
        let answer_id = format!("w{}", self.last_seq + 1);
        let r#for = WaitReason::InterruptedEffect.name();
        draft.event(place, Event::Waiting { r#for, prompt, answer_id: answer_id.clone() });
        self.head.waiting = Some(answer_id);
        self.head.asks_effect = true;
        self.status = SessionStatus::WaitingInput;
    }

    /// The word of the person about the effect that the session asks about.
    pub(crate) fn take_word(&mut self, word: &str) {
        let key = self.frames.leaf();
        if let Some(effect) = self.frames.change(&key).and_then(|frame| frame.effect.as_mut()) {
            effect.word = Some(word.to_owned());
        }
    }
}
