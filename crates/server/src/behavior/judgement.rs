//! The judgement of a behavior, and the signals that older clients read from it.

use bcc_lang::message::message::Message;
use bcc_runtime::notebook::protocol::response::{Reflection, Transition, reflection};
use serde_json::{Value, json};

use crate::behavior::actions::{context_update_json, transition_json};
use crate::behavior::request::BehaviorRequest;
use crate::behavior::workflow_state::WorkflowState;

/// Whether the target of a step is achieved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BehaviorJudgement {
    achieved: bool,
    reflection: Reflection,
}

impl BehaviorJudgement {
    /// Reads the reply of a model or a script.
    ///
    /// # Errors
    /// It is no judgement, or does not say whether the target is achieved.
    pub(crate) fn read(reply: &Value) -> Result<Self, Message> {
        let reflection = reflection(reply).map_err(|error| error.message)?;
        let achieved = reflection.is_target_achieved();
        let achieved = achieved.ok_or_else(|| Message::word("it does not say whether the target is achieved"))?;
        Ok(Self { achieved, reflection })
    }

    /// The judgement when nobody made a usable one: the step goes on.
    pub(crate) fn undecided(reason: &str) -> Self {
        let reflection = Reflection { reason: reason.to_owned(), ..Reflection::default() };
        Self { achieved: false, reflection }
    }

    fn transition(&self) -> Value {
        let Transition { continue_behaviors, .. } = self.reflection.transition;
        transition_json(&Transition {
            target_achieved: Some(self.achieved),
            continue_behaviors: Some(continue_behaviors.unwrap_or(!self.achieved)),
            reason: self.reflection.reason.clone(),
            ..self.reflection.transition.clone()
        })
    }

    /// The answer in the current form, or with `targetAchieved` for older clients.
    pub(crate) fn to_json(&self, is_older: bool) -> Value {
        let achieved = if is_older { "targetAchieved" } else { "target_achieved" };
        json!({
            achieved: self.achieved,
            "reason": self.reflection.reason,
            "transition": self.transition(),
            "context_update": context_update_json(&self.reflection.context_update),
        })
    }
}

/// The signals of a reflection, and the state that follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReflectionSignals {
    pub(crate) actions: Vec<Value>,
    pub(crate) next_state: WorkflowState,
}

impl ReflectionSignals {
    /// Those after a behavior, which was judged.
    pub(crate) fn of_behavior(judgement: &BehaviorJudgement) -> Self {
        let (mark, next_state) = match judgement.achieved {
            true => (Some("mark_step_complete"), WorkflowState::StepCompleted),
            false => (None, WorkflowState::StepRunning),
        };
        Self::new(mark, next_state, &judgement.reflection.reason)
    }

    /// Those after a step or a stage: what remains decides, so nobody is asked. None in another state.
    pub(crate) fn of_progress(request: &BehaviorRequest) -> Option<Self> {
        let observed = &request.observed;
        match request.state? {
            WorkflowState::StepCompleted if observed.steps.remaining.is_empty() => {
                Some(Self::new(Some("mark_stage_complete"), WorkflowState::StageCompleted, ""))
            }
            WorkflowState::StepCompleted => Some(Self::new(None, WorkflowState::StepRunning, "")),
            WorkflowState::StageCompleted if observed.stages.remaining.is_empty() => {
                Some(Self::new(None, WorkflowState::WorkflowCompleted, ""))
            }
            WorkflowState::StageCompleted => Some(Self::new(None, WorkflowState::StageRunning, "")),
            WorkflowState::WorkflowCompleted => Some(Self::new(None, WorkflowState::WorkflowCompleted, "")),
            _ => None,
        }
    }

    fn new(mark: Option<&str>, next_state: WorkflowState, reason: &str) -> Self {
        let mut actions: Vec<Value> = mark.map(|mark| json!({ "type": mark })).into_iter().collect();
        actions.push(json!({ "type": "complete_reflection", "reason": reason }));
        Self { actions, next_state }
    }

    /// The answer in one piece.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "actions": self.actions, "next_state": self.next_state.name() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judgement_is_read_in_each_form_and_written_in_both() {
        for (reply, achieved, continues) in [
            (json!({"target_achieved": true, "reason": "r"}), true, false),
            (json!({"targetAchieved": false}), false, true),
            (json!({"transition": {"targetAchieved": true, "continue_behaviors": true}}), true, true),
            (json!(true), true, false),
        ] {
            let judgement = BehaviorJudgement::read(&reply).unwrap();
            let (current, older) = (judgement.to_json(false), judgement.to_json(true));
            assert_eq!((&current["target_achieved"], &older["targetAchieved"]), (&achieved.into(), &achieved.into()));
            assert_eq!(older["transition"]["target_achieved"], achieved, "{reply}");
            assert_eq!(older["transition"]["continue_behaviors"], continues, "{reply}");
            assert_eq!(reflection(&older).unwrap().is_target_achieved(), Some(achieved));
        }
        for rubbish in [json!({}), json!("yes"), json!({"reason": "r"}), json!({"metadata": {"target_achieved": true}})]
        {
            assert!(BehaviorJudgement::read(&rubbish).is_err(), "{rubbish}");
        }
        assert_eq!(BehaviorJudgement::undecided("why").to_json(false)["target_achieved"], false);
    }

    #[test]
    fn each_state_has_its_signals() {
        let signals = |state: &str, steps: Value, stages: Value| {
            let progress = json!({"steps": {"remaining": steps}, "stages": {"remaining": stages}});
            let body = json!({"observation": {"location": {"progress": progress}}, "state": {"FSM": {"state": state}}});
            ReflectionSignals::of_progress(&BehaviorRequest::read(body.as_object().unwrap().clone()).unwrap())
        };
        let shown = |signals: ReflectionSignals| {
            let types: Vec<&str> = signals.actions.iter().map(|action| action["type"].as_str().unwrap()).collect();
            format!("{} {}", types.join(" "), signals.next_state.name())
        };
        for (state, steps, stages, expected) in [
            ("STEP_COMPLETE", json!([]), json!([]), "mark_stage_complete complete_reflection STAGE_COMPLETED"),
            ("STEP_COMPLETED", json!([{"step_id": "b"}]), json!([]), "complete_reflection STEP_RUNNING"),
            ("STAGE_COMPLETED", json!([]), json!(["b"]), "complete_reflection STAGE_RUNNING"),
            ("STAGE_COMPLETED", json!([]), json!([]), "complete_reflection WORKFLOW_COMPLETED"),
        ] {
            assert_eq!(shown(signals(state, steps, stages).unwrap()), expected, "{state}");
        }
        assert_eq!(signals("BEHAVIOR_COMPLETED", json!([]), json!([])), None);
        let judged =
            |achieved: bool| shown(ReflectionSignals::of_behavior(&BehaviorJudgement::read(&json!(achieved)).unwrap()));
        assert_eq!(judged(true), "mark_step_complete complete_reflection STEP_COMPLETED");
        assert_eq!(judged(false), "complete_reflection STEP_RUNNING");
    }
}
