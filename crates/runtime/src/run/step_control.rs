//! Step-by-step control of a session for replays: it runs one step at a time, and the next turn can be tried without being
//! committed.

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
    /// Runs one turn, or the triggers on the newest answer, if the session is running. Returns the new status.
    pub async fn step(&mut self) -> Result<SessionStatus, RunError> {
        if self.status() == SessionStatus::Running {
            self.one_turn().await?;
        }
        Ok(self.status())
    }

    /// Checks the triggers against the newest answer, if this was not done. Returns whether one fired.
    pub async fn check_triggers_on_answer(&mut self) -> Result<bool, RunError> {
        let program = Arc::clone(&self.program);
        self.look_at_answer(&program).await
    }

    /// Stores advice for the next turn, as if a monitor had given it.
    pub fn advise(&mut self, text: String) {
        let program = Arc::clone(&self.program);
        let key = self.frames.leaf();
        let Some(visit_key) = self.position(&program, &key).map(|position| position.visit_key) else { return };
        let advice = Advice {
            seq: 0,
            outcome_seq: 0,
            text,
            action_id: String::new(),
            action_type: String::new(),
            round: 0,
            analysis: Value::Null,
        };
        if let Some(frame) = self.frames.change(&visit_key) {
            frame.advice = Some(Box::new(advice));
        }
    }

    /// Applies an accepted plan to the visit of a topic at `at`. Returns false if the session is not in that visit.
    pub async fn replan(&mut self, at: &EventLocation, plan: OrchestrationPlan) -> Result<bool, RunError> {
        let leaf = self.frames.leaf();
        let Some(visit_key) = lineage(&leaf).find(|key| public_path(key) == at.path).map(str::to_owned) else {
            return Ok(false);
        };
        let (action_id, round) = (at.action_id.clone().unwrap_or_default(), at.round.unwrap_or(1));
        let request = RequestedPlan { visit_key, action_id, round, analysis: Value::Null, exit_reason: None };
        let before = Arc::clone(&self.program);
        let mut draft = CommitDraft::default();
        self.apply_finished_plan(
            FinishedPlan { asked: request, generated: Generated { plan: Some(plan), ..Generated::default() } },
            &mut draft,
        );
        self.commit(draft).await?;
        Ok(!Arc::ptr_eq(&before, &self.program))
    }

    /// The program with the plans of the current visit applied, for a caller that wants to change it; `None` if there are no plans.
    /// Errors: The check rejects a plan that it accepted before.
    pub fn replanned(&self) -> Result<Option<Program>, RunError> {
        replanned(&self.frames, &self.base, self.services.recheck.as_ref())
            .map_err(|what| RunError::Unreadable { id: self.id.clone(), what })
    }

    /// Runs the next turn with this program, of the same script, and these services, without committing anything.
    /// Errors: The session's position is not an action.
    pub async fn dry_run_turn(
        &self,
        program: &Program,
        services: &Services,
    ) -> Result<Result<(), ActionError>, RunError> {
        let key = self.frames.leaf();
        let unreadable = |what: &'static str| RunError::Unreadable { id: self.id.clone(), what: Message::word(what) };
        let position =
            self.position(program, &key).ok_or_else(|| unreadable("its frames do not point to an action"))?;
        let frame = self.frames.get(&key).ok_or_else(|| unreadable("it has no frame"))?;
        let (place, reasons_with_route) = (self.place_of(&key), position.reasons_with_route(program));
        let resources = self.turn_resources((program, services), (&key, frame), &position, &place, &reasons_with_route);
        let turn = Turn::new(resources, self.scopes.clone());
        Ok(position.step.action.turn(&turn).await.map(drop))
    }
}
