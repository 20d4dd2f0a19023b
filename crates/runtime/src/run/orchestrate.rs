//! Plans for the rest of a topic: when one is asked for, what becomes of it, and how long it counts (docs/monitors.md,
//! "Path 2"). What a plan may change is decided in [`crate::program::orchestration`].

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use tracing::error;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::orchestration::plan::{Cursor, PlanError};
use crate::program::orchestration::plan_prompt::{OrchestrationContext, PlanRequest};
use crate::program::orchestration::plans::Plans;
use crate::program::orchestration::should_orchestrate;
use crate::program::program::{Phase, Program, Topic};
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, FrameTarget, Frames, ROOT, component, id_of, is_below, lineage, parent};
use crate::run::planner::{FinishedPlan, RequestedPlan};
use crate::run::session::Session;

/// Why a plan is none any more.
const OVER: &str = "the visit to the topic that it was made for is over";

impl Session {
    /// Asks for a plan, when the topic allows it and nothing speaks against it. It is made beside the session. Gives why none is
    /// made though one was wanted; [`Session::no_plan`] tells that.
    pub(crate) fn ask_for_plan(&mut self, asked: RequestedPlan) -> Option<Message> {
        // What nobody has a budget for is not asked.
        if self.larger_budget().is_some() {
            return None;
        }
        let program = Arc::clone(&self.program);
        let Some(frame) = self.frames.get(&asked.home) else {
            return may_plan(&self.base, &asked.home).then(|| Message::word(OVER));
        };
        let (phase, topic) = self.topic_at(&program, &asked.home)?;
        let plans = frame.plans.as_deref().cloned().unwrap_or_default();
        // Both are known at once; to know the actions, the whole script is read.
        if !topic.strategy.orchestration || plans.are_used_up() {
            return None;
        }
        let Some(written) = self.services.recheck.actions(&topic.id) else {
            error!(topic_id = topic.id, "a topic that runs is not in its script");
            return Some(Message::word("the script has no such topic"));
        };
        let actions = match plans.replay(written) {
            Ok(actions) => actions,
            Err(refused) => {
                error!(
                    topic_id = topic.id,
                    code = refused.code,
                    "the plans of a topic do not fit its actions: {refused}"
                );
                return Some(msg!("the earlier plans do not fit the topic: {refused}", refused = refused.why));
            }
        };
        let mut place = self.place_of(&asked.home);
        place.action_id = Some(asked.action_id.clone());
        place.round = Some(asked.round);
        let context = OrchestrationContext::new(PlanRequest {
            program: &program,
            services: &self.services,
            phase,
            topic,
            place: &place,
            recent: &self.recent,
            scopes: self.script_scopes().clone(),
            actions,
            cursor: self.cursor(&asked.home),
            plans: &plans,
            last_seq: self.last_seq,
            call_id: format!("c{}.plan{}", self.last_seq + 1, plans.asked),
        });
        if !should_orchestrate(&asked.analysis, &context) {
            return None;
        }
        let home = asked.home.clone();
        if !self.planner.start(asked, context) {
            return Some(Message::word("another plan is being made"));
        }
        if let Some(frame) = self.frames.change(&home) {
            frame.plans.get_or_insert_default().asked += 1;
        }
        None
    }

    /// Tells that there is no plan, and why.
    pub(crate) fn no_plan(place: &EventLocation, why: Message, draft: &mut CommitDraft) {
        let message = msg!("there is no plan for the rest of the topic: {why}");
        draft.event(place, Event::Warning { code: "plan-failed", message, help: None });
    }

    /// Does what a plan says, or tells why not (`execute_orchestration` of docs/monitors.md).
    pub(crate) fn note_plan(&mut self, planned: FinishedPlan, draft: &mut CommitDraft) {
        let FinishedPlan { asked, generated } = planned;
        let mut place = self.place_of(&asked.home);
        place.action_id = Some(asked.action_id.clone());
        place.round = Some(asked.round);
        self.note_calls(&place, generated.calls, draft);
        if let Some(fault) = generated.fault {
            Self::no_plan(&place, fault, draft);
        }
        let Some(plan) = generated.plan else { return };
        let program = Arc::clone(&self.program);
        let recheck = Arc::clone(&self.services.recheck);
        let about = (&asked.analysis, asked.action_id.as_str());
        let Some((_, topic)) = self.topic_at(&program, &asked.home) else {
            let refused = PlanError::new("too-late", OVER);
            draft.event(&place, Plans::default().told(&plan, Some(&refused), about, &[]));
            return;
        };
        // Where there are none, the plan is refused for that reason.
        let original = recheck.actions(&topic.id).unwrap_or_default();
        let cursor = self.cursor(&asked.home);
        let mut plans =
            self.frames.get(&asked.home).and_then(|frame| frame.plans.as_deref().cloned()).unwrap_or_default();
        let accepted = plans.apply(plan.clone(), cursor, &topic.id, recheck.as_ref());
        draft.event(&place, plans.told(&plan, accepted.as_ref().err(), about, &original));
        if let Ok(accepted) = accepted {
            self.program = Arc::new(accepted.program);
        }
        if let Some(frame) = self.frames.change(&asked.home) {
            frame.plans = Some(Box::new(plans));
        }
    }

    /// Asks again for the plan that was not there when the session came to rest. Why there will be none is noted like a plan
    /// that came in.
    pub(crate) fn plan_again(&mut self) {
        if let Some(asked) = self.head.planning.take() {
            // It was counted when it was asked for the first time.
            if let Some(plans) = self.frames.change(&asked.home).and_then(|frame| frame.plans.as_mut()) {
                plans.asked = plans.asked.saturating_sub(1);
            }
            if let Some(fault) = self.ask_for_plan(asked.clone()) {
                if let Some(plans) = self.frames.change(&asked.home).and_then(|frame| frame.plans.as_mut()) {
                    plans.asked += 1;
                }
                self.planner.failed(asked, fault);
            }
        }
    }

    /// A topic's visit is over: what plans made of the topic counts no more.
    pub(crate) fn visit_over(&mut self, key: &str, frame: &Frame) {
        self.mailbox.forget(key);
        if frame.plans.as_ref().is_some_and(|plans| !plans.applied.is_empty()) {
            self.program = Arc::clone(&self.base);
        }
    }

    /// The phase and topic of the frame `home`, when it is a topic that is being visited.
    fn topic_at<'p>(&self, program: &'p Program, home: &str) -> Option<(&'p Phase, &'p Topic)> {
        let frame = self.frames.get(home)?;
        let phase = program.phases.get(self.frames.get(ROOT)?.next)?;
        let topic = phase.topics.get(self.frames.get(parent(home))?.next)?;
        (frame.at == FrameTarget::Topic).then_some((phase, topic))
    }

    /// How far the visit `home` has come.
    fn cursor(&self, home: &str) -> Cursor {
        let at = self.frames.get(home).map_or(0, |frame| frame.next);
        Cursor { at, begun: is_below(&self.frames.leaf(), home) }
    }
}

/// Whether the topic whose frame had the key `home`, and has ended, allows plans. A skill has none of its own.
fn may_plan(program: &Program, home: &str) -> bool {
    let key: Vec<&str> = lineage(home).map(|key| id_of(component(key))).collect();
    let [phase, topic] = key.as_slice() else { return false };
    let phase = program.phases.iter().find(|found| found.id == *phase);
    let topic = phase.and_then(|phase| phase.topics.iter().find(|found| found.id == *topic));
    topic.is_some_and(|topic| topic.strategy.orchestration)
}

/// The program as the plans in these frames have made it; `None` when there are none.
/// Errors: When a plan that counted before does not check any more.
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
        .map_err(|refused| msg!("a plan of the topic: {refused}", refused = refused.why))?;
    Ok(accepted.map(|accepted| accepted.program))
}
