//! Plans for the rest of a topic: when one is asked for, what becomes of it, and how long it counts (LANGUAGE.md section 9,
//! "Path 2"). What a plan may change is decided in [`crate::program::orchestration`].

use std::sync::Arc;

use crate::program::event::Event;
use crate::program::orchestration::asking::{OrchestrationContext, Planning};
use crate::program::orchestration::plan::{Cursor, Refused};
use crate::program::orchestration::plans::Plans;
use crate::program::orchestration::should_orchestrate;
use crate::program::program::{Phase, Program, Topic};
use crate::run::draft::Draft;
use crate::run::frames::{At, Frame, Frames, ROOT, is_below, lineage, parent};
use crate::run::planner::{Asked, Planned};
use crate::run::session::Session;

impl Session {
    /// Asks for a plan, when the topic allows it and nothing speaks against it. It is made beside the session.
    pub(crate) fn ask_for_plan(&mut self, asked: Asked) {
        // What nobody has a budget for is not asked.
        if self.larger_budget().is_some() {
            return;
        }
        let program = Arc::clone(&self.program);
        let Some((phase, topic)) = self.topic_at(&program, &asked.home) else { return };
        let Some(frame) = self.frames.get(&asked.home) else { return };
        let plans = frame.plans.as_deref().cloned().unwrap_or_default();
        let written = self.services.recheck.actions(&topic.id).and_then(|written| plans.replay(written).ok());
        let Some(actions) = written else { return };
        let mut place = self.place_of(&asked.home);
        place.action_id = Some(asked.action_id.clone());
        place.round = Some(asked.round);
        let context = OrchestrationContext::new(Planning {
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
            return;
        }
        let home = asked.home.clone();
        if self.planner.start(asked, context)
            && let Some(frame) = self.frames.change(&home)
        {
            frame.plans.get_or_insert_default().asked += 1;
        }
    }

    /// Does what a plan says, or tells why not (`execute_orchestration` of 004).
    pub(crate) fn note_plan(&mut self, planned: Planned, draft: &mut Draft) {
        let Planned { asked, generated } = planned;
        let mut place = self.place_of(&asked.home);
        place.action_id = Some(asked.action_id.clone());
        place.round = Some(asked.round);
        if let Some(call) = generated.call {
            self.head.model_calls += 1;
            self.head.tokens_in += call.tokens_in.unwrap_or(0);
            self.head.tokens_out += call.tokens_out.unwrap_or(0);
            draft.event(&place, Event::ModelCall(Box::new(call)));
        }
        if let Some(fault) = generated.fault {
            let message = format!("there is no plan for the rest of the topic: {fault}");
            draft.event(&place, Event::Warning { code: "plan-failed", message, help: None });
        }
        let Some(plan) = generated.plan else { return };
        let program = Arc::clone(&self.program);
        let recheck = Arc::clone(&self.services.recheck);
        let about = (&asked.analysis, asked.action_id.as_str());
        let Some((_, topic)) = self.topic_at(&program, &asked.home) else {
            let refused = Refused::new("too-late", "the visit of the topic that it was made for is over");
            draft.event(&place, Plans::default().told(&plan, Some(&refused), about, &[]));
            return;
        };
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

    /// Asks again for the plan that was not there when the session came to rest.
    pub(crate) fn plan_again(&mut self) {
        if let Some(asked) = self.head.planning.take() {
            // It was counted when it was asked for the first time.
            if let Some(plans) = self.frames.change(&asked.home).and_then(|frame| frame.plans.as_mut()) {
                plans.asked = plans.asked.saturating_sub(1);
            }
            self.ask_for_plan(asked);
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
        (frame.at == At::Topic).then_some((phase, topic))
    }

    /// How far the visit `home` has come.
    fn cursor(&self, home: &str) -> Cursor {
        let at = self.frames.get(home).map_or(0, |frame| frame.next);
        Cursor { at, begun: is_below(&self.frames.leaf(), home) }
    }
}

/// The program as the plans in these frames have made it; `None` when there are none.
///
/// # Errors
/// When a plan that counted before does not check any more.
pub(crate) fn replanned(
    frames: &Frames,
    program: &Program,
    recheck: &dyn crate::program::recheck::Recheck,
) -> Result<Option<Program>, String> {
    let leaf = frames.leaf();
    let planned = lineage(&leaf).find_map(|key| {
        let plans = frames.get(key)?.plans.as_deref()?;
        let phase = program.phases.get(frames.get(ROOT)?.next)?;
        Some((plans, phase.topics.get(frames.get(parent(key))?.next)?))
    });
    let Some((plans, topic)) = planned else { return Ok(None) };
    let accepted = plans.program(&topic.id, recheck).map_err(|refused| format!("a plan of the topic: {refused}"))?;
    Ok(accepted.map(|accepted| accepted.program))
}
