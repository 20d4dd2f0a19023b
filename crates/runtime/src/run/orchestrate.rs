//! Plans for the remaining topic: when one is requested, how it is applied, and how long it counts (docs/monitors.md, "Path 2").
//! [`crate::program::orchestration`] decides what a plan may change.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use tracing::error;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::orchestration::plan::{Cursor, PlanChange, PlanError};
use crate::program::orchestration::plan_prompt::{OrchestrationContext, PlanRequest};
use crate::program::orchestration::plans::Plans;
use crate::program::orchestration::should_orchestrate;
use crate::program::program::{Phase, Program, Topic};
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, FrameTarget, Frames, ROOT, component, id_of, is_below, lineage, parent};
use crate::run::planner::{FinishedPlan, RequestedPlan};
use crate::run::session::Session;

/// The reason for rejecting a plan whose visit has ended.
const VISIT_ENDED: &str = "the visit to the topic that it was made for is over";

impl Session {
    /// Requests a plan in the background, if the topic allows it and nothing prevents it. Returns the reason if none is made although
    /// one was requested; [`Session::report_no_plan`] reports it.
    pub(crate) fn ask_for_plan(&mut self, request: RequestedPlan) -> Option<Message> {
        // Without a budget no plan is requested.
        if self.larger_budget().is_some() {
            return None;
        }
        let program = Arc::clone(&self.program);
        let Some(frame) = self.frames.get(&request.visit_key) else {
            return allows_plans(&self.base, &request.visit_key).then(|| Message::word(VISIT_ENDED));
        };
        let (phase, topic) = self.topic_at(&program, &request.visit_key)?;
        let plans = frame.plans.as_deref().cloned().unwrap_or_default();
        // Both are cheap to check; the actions require reading the complete script.
        if !topic.strategy.orchestration || plans.are_used_up() {
            return None;
        }
        let Some(original) = self.services.recheck.actions(&topic.id) else {
            error!(topic_id = topic.id, "a topic that runs is not in its script");
            return Some(Message::word("the script has no such topic"));
        };
        let actions = match plans.replay(original) {
            Ok(actions) => actions,
            Err(rejected) => {
                error!(
                    topic_id = topic.id,
                    code = rejected.code,
                    "the plans of a topic do not fit its actions: {rejected}"
                );
                return Some(msg!("the earlier plans do not fit the topic: {refused}", refused = rejected.why));
            }
        };
        let mut place = self.place_of(&request.visit_key);
        place.action_id = Some(request.action_id.clone());
        place.round = Some(request.round);
        let context = OrchestrationContext::new(PlanRequest {
            program: &program,
            services: &self.services,
            session: &self.id,
            phase,
            topic,
            place: &place,
            recent: &self.recent,
            scopes: self.script_scopes().clone(),
            actions,
            cursor: self.cursor(&request.visit_key),
            plans: &plans,
            exit_reason: request.exit_reason,
            last_seq: self.last_seq,
            call_id: format!("c{}.plan{}", self.last_seq + 1, plans.requests),
        });
        if !should_orchestrate(&request.analysis, &context) {
            return None;
        }
        let visit_key = request.visit_key.clone();
        if !self.planner.start(request, context) {
            return Some(Message::word("another plan is being made"));
        }
        if let Some(frame) = self.frames.change(&visit_key) {
            frame.plans.get_or_insert_default().requests += 1;
        }
        None
    }

    /// Reports that there is no plan, and why.
    pub(crate) fn report_no_plan(place: &EventLocation, why: Message, draft: &mut CommitDraft) {
        let message = msg!("there is no plan for the rest of the topic: {why}");
        draft.event(place, Event::Warning { code: "plan-failed", message, help: None });
    }

    /// Applies a plan, or reports why not (docs/orchestration.md).
    pub(crate) fn apply_finished_plan(&mut self, planned: FinishedPlan, draft: &mut CommitDraft) {
        let FinishedPlan { asked, generated } = planned;
        let mut place = self.place_of(&asked.visit_key);
        place.action_id = Some(asked.action_id.clone());
        place.round = Some(asked.round);
        self.record_calls(&place, generated.calls, draft);
        if let Some(failure) = generated.error {
            Self::report_no_plan(&place, failure, draft);
        }
        let Some(plan) = generated.plan else { return };
        let program = Arc::clone(&self.program);
        let recheck = Arc::clone(&self.services.recheck);
        let cause = (&asked.analysis, asked.action_id.as_str());
        let Some((_, topic)) = self.topic_at(&program, &asked.visit_key) else {
            let rejected = PlanError::new("too-late", VISIT_ENDED);
            draft.event(&place, Plans::default().event(&plan, Some(&rejected), cause, &[]));
            return;
        };
        // If there are none, the plan is rejected for that reason.
        let original = recheck.actions(&topic.id).unwrap_or_default();
        let cursor = self.cursor(&asked.visit_key);
        let mut plans =
            self.frames.get(&asked.visit_key).and_then(|frame| frame.plans.as_deref().cloned()).unwrap_or_default();
        plans.repeated += u32::from(generated.repeated);
        if plan.action == PlanChange::NoChange {
            draft.event(&place, plans.event(&plan, None, cause, &original));
        } else {
            let accepted = plans.apply(plan.clone(), cursor, &topic.id, recheck.as_ref());
            draft.event(&place, plans.event(&plan, accepted.as_ref().err(), cause, &original));
            if let Ok(accepted) = accepted {
                self.program = Arc::new(accepted.program);
            }
        }
        if let Some(frame) = self.frames.change(&asked.visit_key) {
            frame.plans = Some(Box::new(plans));
        }
    }

    /// Requests again the plan that was missing when the session was stored. If none will be made, the reason is stored like a
    /// finished plan.
    pub(crate) fn restart_plan(&mut self) {
        if let Some(asked) = self.head.planning.take() {
            // It was counted at the first request.
            if let Some(plans) = self.frames.change(&asked.visit_key).and_then(|frame| frame.plans.as_mut()) {
                plans.requests = plans.requests.saturating_sub(1);
            }
            if let Some(failure) = self.ask_for_plan(asked.clone()) {
                if let Some(plans) = self.frames.change(&asked.visit_key).and_then(|frame| frame.plans.as_mut()) {
                    plans.requests += 1;
                }
                self.planner.failed(asked, failure);
            }
        }
    }

    /// The visit of a topic ended: changes of plans no longer apply.
    pub(crate) fn visit_ended(&mut self, key: &str, frame: &Frame) {
        self.mailbox.forget(key);
        if frame.plans.as_ref().is_some_and(|plans| !plans.applied.is_empty()) {
            self.program = Arc::clone(&self.base);
        }
    }

    /// The phase and topic of the frame `visit_key`, if it is a topic that is being visited.
    fn topic_at<'p>(&self, program: &'p Program, visit_key: &str) -> Option<(&'p Phase, &'p Topic)> {
        let frame = self.frames.get(visit_key)?;
        let phase = program.phases.get(self.frames.get(ROOT)?.next)?;
        let topic = phase.topics.get(self.frames.get(parent(visit_key))?.next)?;
        (frame.at == FrameTarget::Topic).then_some((phase, topic))
    }

    /// The progress of the visit `visit_key`.
    fn cursor(&self, visit_key: &str) -> Cursor {
        let at = self.frames.get(visit_key).map_or(0, |frame| frame.next);
        Cursor { at, started: is_below(&self.frames.leaf(), visit_key) }
    }
}

/// Whether the topic whose frame had the key `visit_key`, and has ended, allows plans. Skills have no plans.
fn allows_plans(program: &Program, visit_key: &str) -> bool {
    let key: Vec<&str> = lineage(visit_key).map(|key| id_of(component(key))).collect();
    let [phase, topic] = key.as_slice() else { return false };
    let phase = program.phases.iter().find(|found| found.id == *phase);
    let topic = phase.and_then(|phase| phase.topics.iter().find(|found| found.id == *topic));
    topic.is_some_and(|topic| topic.strategy.orchestration)
}

/// The program with the plans in these frames applied; `None` if there are none.
/// Errors: The check rejects a plan that it accepted before.
pub(crate) fn replanned(
    frames: &Frames,
    program: &Program,
    recheck: &dyn crate::program::recheck::Recheck,
) -> Result<Option<Program>, Message> {
    let leaf = frames.leaf();
    let planned = lineage(&leaf).find_map(|key| {
        let plans = frames.get(key)?.plans.as_deref()?;
        let phase = program.phases.get(frames.get(ROOT)?.next)?;
        Some((plans, phase.topics.get(frames.get(parent(key))?.next)?))
    });
    let Some((plans, topic)) = planned else { return Ok(None) };
    let accepted = plans
        .program(&topic.id, recheck)
        .map_err(|rejected| msg!("a plan of the topic: {refused}", refused = rejected.why))?;
    Ok(accepted.map(|accepted| accepted.program))
}
