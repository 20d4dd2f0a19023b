//! A session that is repeated to see what it was at some moment: it is led step by step, and its next turn can be tried without
//! being taken.

use bcc_lang::message::message::Message;
use std::sync::Arc;

use serde_json::Value;

use crate::program::flow::ActionError;
use crate::program::location::EventLocation;
use crate::program::orchestration::Generated;
use crate::program::orchestration::plan::OrchestrationPlan;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::turn::Turn;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{lineage, public_path};
use crate::run::head::SessionStatus;
use crate::run::monitors::Advice;
use crate::run::orchestrate::replanned;
use crate::run::planner::{FinishedPlan, RequestedPlan};
use crate::run::session::Session;

impl Session {
    /// One turn, or what the triggers do about the newest answer, when one is due. Gives where the session is then.
    pub async fn step(&mut self) -> Result<SessionStatus, RunError> {
        if self.status() == SessionStatus::Running {
            self.one_turn().await?;
        }
        Ok(self.status())
    }

    /// Lets the triggers look at the newest answer, if they did not yet. Gives whether one of them stepped in.
    pub async fn look(&mut self) -> Result<bool, RunError> {
        let program = Arc::clone(&self.program);
        self.look_at_answer(&program).await
    }

    /// Lays down advice for the next turn, as a monitor's that came in.
    pub fn advise(&mut self, text: String) {
        let program = Arc::clone(&self.program);
        let key = self.frames.leaf();
        let Some(home) = self.position(&program, &key).map(|position| position.home) else { return };
        let advice = Advice {
            seq: 0,
            about: 0,
            text,
            action_id: String::new(),
            action_type: String::new(),
            round: 0,
            analysis: Value::Null,
        };
        if let Some(frame) = self.frames.change(&home) {
            frame.advice = Some(Box::new(advice));
        }
    }

    /// Does what a plan says that counted for the visit of a topic at `at`. Gives whether that is where the session is.
    pub async fn replan(&mut self, at: &EventLocation, plan: OrchestrationPlan) -> Result<bool, RunError> {
        let leaf = self.frames.leaf();
        let Some(home) = lineage(&leaf).find(|key| public_path(key) == at.path).map(str::to_owned) else {
            return Ok(false);
        };
        let (action_id, round) = (at.action_id.clone().unwrap_or_default(), at.round.unwrap_or(1));
        let asked = RequestedPlan { home, action_id, round, analysis: Value::Null };
        let before = Arc::clone(&self.program);
        let mut draft = CommitDraft::default();
        self.note_plan(
            FinishedPlan { asked, generated: Generated { plan: Some(plan), ..Generated::default() } },
            &mut draft,
        );
        self.commit(draft).await?;
        Ok(!Arc::ptr_eq(&before, &self.program))
    }

    /// The program of the script as the plans of the present visit have made it, for a caller that wants to change it; `None`
    /// when no plan did.
    /// Errors: When a plan that counted does not check any more.
    pub fn replanned(&self) -> Result<Option<Program>, RunError> {
        replanned(&self.frames, &self.base, self.services.recheck.as_ref())
            .map_err(|what| RunError::Unreadable { id: self.id.clone(), what })
    }

    /// Tries the next turn with this program, of the same script, and these services. Nothing that it does counts.
    /// Errors: When the session stands at no action.
    pub async fn rehearse(&self, program: &Program, services: &Services) -> Result<Result<(), ActionError>, RunError> {
        let key = self.frames.leaf();
        let unreadable = |what: &'static str| RunError::Unreadable { id: self.id.clone(), what: Message::word(what) };
        let position =
            self.position(program, &key).ok_or_else(|| unreadable("its frames do not point to an action"))?;
        let frame = self.frames.get(&key).ok_or_else(|| unreadable("it has no frame"))?;
        let (place, routed) = (self.place_of(&key), position.routed(program));
        let lent = self.lent((program, services), (&key, frame), &position, &place, &routed);
        let turn = Turn::new(lent, self.scopes.clone());
        Ok(position.step.action.turn(&turn).await.map(drop))
    }
}
