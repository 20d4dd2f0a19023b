//! How a session begins to wait: the event, and the request that is open until the answer is committed.

use crate::program::event::{Event, Speaker};
use crate::program::flow::WaitReason;
use crate::program::interrupted_effects::EFFECT_DECISIONS;
use crate::program::location::EventLocation;
use crate::run::draft::CommitDraft;
use crate::run::head::SessionStatus;
use crate::run::session::{Session, next_answer_id};
use bcc_store::rows::RequestRow;

impl Session {
    /// Waits after a turn. The prompt of a question is the last message of the turn, or of an earlier one, if it is not answered yet.
    pub(crate) fn wait(&mut self, what: WaitReason, place: &EventLocation, draft: &mut CommitDraft) {
        if what == WaitReason::InterruptedEffect {
            return self.ask_about_effect(place, draft);
        }
        let message = draft.events.iter().rev().find_map(|(_, event)| match event {
            Event::Message { role: Speaker::Ai, text, .. } => Some(text.clone()),
            _ => None,
        });
        let message = message.or_else(|| self.recent.unanswered().map(str::to_owned));
        self.wait_for_answer(message.unwrap_or_default(), place, draft);
    }

    /// Waits for the next answer in the conversation.
    pub(crate) fn wait_for_answer(&mut self, prompt: String, place: &EventLocation, draft: &mut CommitDraft) {
        let answer_id = next_answer_id(&self.head, self.answers);
        self.open_request(WaitReason::Input, prompt, answer_id, place, draft);
    }

    pub(crate) fn open_request(
        &mut self,
        what: WaitReason,
        prompt: String,
        answer_id: String,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) {
        draft.requests.push(RequestRow {
            id: answer_id.clone(),
            kind: what.name().to_owned(),
            prompt: prompt.clone(),
            decisions: (what == WaitReason::InterruptedEffect).then(|| EFFECT_DECISIONS.to_owned()),
            ..RequestRow::default()
        });
        draft.event(
            place,
            Event::Waiting { r#for: what.name(), prompt, answer_id: answer_id.clone(), request_id: None },
        );
        self.head.waiting = Some(answer_id);
        self.status = SessionStatus::WaitingInput;
    }
}
