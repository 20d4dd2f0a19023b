//! External effects of actions: announced before they start, closed after, and never run twice unless someone asked for it
//! (docs/sessions.md). [`crate::program::interrupted_effects`] decides how open ones are handled.

use bcc_lang::message::message::Message;
use std::sync::PoisonError;

use crate::program::event::Event;
use crate::program::flow::{EffectAnnouncement, OpenEffect, WaitReason};
use crate::program::interrupted_effects::question;
use crate::program::location::EventLocation;
use crate::run::draft::CommitDraft;
use crate::run::head::earlier_effect;
use crate::run::session::Session;

impl Session {
    /// Whether this process announced the effect and no turn has started it. Effects of a resumed session are not due: it is not
    /// known how far they got.
    pub(crate) fn is_due(&self, effect_id: &str) -> bool {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).contains(effect_id)
    }

    /// A turn starts the effect: from then on it is not due, regardless of how the turn ends.
    pub(crate) fn mark_started(&self, effect_id: &str) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).remove(effect_id);
    }

    /// Announces the external effect of the innermost action, which starts with its next turn. The announcement is committed first.
    pub(crate) fn announce(&mut self, place: &EventLocation, announced: EffectAnnouncement, draft: &mut CommitDraft) {
        let key = self.frames.leaf();
        let EffectAnnouncement { kind, summary } = announced;
        let id = format!("e{}", self.last_seq + 1);
        let is_earlier = self.take_earlier_effect(kind, place);
        let (answer, code) = (None, None);
        let effect =
            OpenEffect { id: id.clone(), kind: kind.to_owned(), summary: summary.clone(), answer, is_earlier, code };
        if let Some(frame) = self.frames.change(&key) {
            frame.effect = Some(effect);
        }
        draft.event(place, Event::EffectStarted { effect_id: id.clone(), kind: kind.to_owned(), summary });
        // What the earlier session has done is not due: the person decides.
        if !is_earlier {
            self.due.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// Whether the session that this one repeats has had this effect, and this one has not announced it yet.
    fn take_earlier_effect(&mut self, kind: &str, place: &EventLocation) -> bool {
        let key = earlier_effect(kind, place.action_id.as_deref().unwrap_or_default());
        let Some(count) = self.head.earlier_effects.get_mut(&key) else { return false };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.head.earlier_effects.remove(&key);
        }
        true
    }

    /// Closes the open external effect of the action `key`, if any, because the action ends.
    pub(crate) fn close_effect_of(
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
            self.mark_started(&effect_id);
            draft.event(place, Event::EffectFinished { effect_id, kind, summary: Message::word(summary) });
        }
    }

    /// Closes, in the history, the effects of actions that the session has left: by a route, when the time was up, or because the
    /// session ended. They are reported before the end.
    pub(crate) fn close_abandoned(&mut self, draft: &mut CommitDraft) {
        let place = self.place();
        let mut abandoned = self.frames.take_abandoned();
        if self.status.is_final() {
            abandoned.extend(self.frames.take_open());
        }
        for effect in abandoned {
            let event = self.abandoned_effect(effect);
            draft.event_before_end(&place, event);
        }
        self.close_withdrawn(draft);
    }

    /// The event that closes an effect that the session has left.
    pub(crate) fn abandoned_effect(&self, effect: OpenEffect) -> Event {
        let OpenEffect { id: effect_id, kind, .. } = effect;
        let summary = if self.is_due(&effect_id) { "not started" } else { "abandoned; it is not known how far it got" };
        self.mark_started(&effect_id);
        Event::EffectFinished { effect_id, kind, summary: Message::word(summary) }
    }

    /// Asks the person about the open effect of the innermost action. The question and its answer are no messages of the conversation:
    /// they would mislead all later prompts. That an answer was none of the expected ones is said once, and not by the question, which is
    /// shown whenever the session is resumed.
    pub(crate) fn ask_about_effect(&mut self, place: &EventLocation, draft: &mut CommitDraft) {
        let key = self.frames.leaf();
        let effect = self.frames.get(&key).and_then(|frame| frame.effect.as_ref());
        let prompt = effect.map(|effect| question(&self.program, &self.recent, effect)).unwrap_or_default();
        let effect = self.frames.change(&key).and_then(|frame| frame.effect.as_mut());
        if effect.is_some_and(|effect| effect.answer.take().is_some()) {
            let message = Message::word("that was not one of the expected answers");
            draft.event(place, Event::Warning { code: "unexpected-answer", message, help: None });
        }
        // An id that no answer of the conversation has: those are numbered differently.
        let answer_id = format!("w{}", self.last_seq + 1);
        self.open_request(WaitReason::InterruptedEffect, prompt, answer_id, place, draft);
        self.head.asks_effect = true;
    }

    /// Stores the person's answer about the open effect of the action `key`, which the session asked about.
    pub(crate) fn store_effect_answer(&mut self, key: &str, answer: &str) {
        if let Some(effect) = self.frames.change(key).and_then(|frame| frame.effect.as_mut()) {
            effect.answer = Some(answer.to_owned());
        }
    }
}
