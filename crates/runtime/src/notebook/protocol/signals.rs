//! The signals of older servers that judge with actions (docs/protocol.md): `mark_step_complete`, `mark_stage_complete` and
//! `complete_reflection`.

use serde_json::{Map, Value};

use crate::notebook::action::sent_action;

/// The maximum number of other actions of a judgement: remarks for the notebook.
const MAX_REMARKS: usize = 20;

/// What the actions of a judgement say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct JudgementSignals {
    pub achieved: Option<bool>,
    pub completes_stage: bool,
    pub reason: String,
    /// Its other actions, such as a text about the result.
    pub remarks: Vec<Value>,
}

/// The signals of a judgement. `None` if it has none.
pub(crate) fn signals(payload: &Map<String, Value>) -> Option<JudgementSignals> {
    let next_state = payload.get("next_state").and_then(Value::as_str).map(str::to_ascii_uppercase);
    let mut signals = JudgementSignals::default();
    let (mut completes_step, mut found) = (false, next_state.is_some());
    for sent in payload.get("actions").and_then(Value::as_array).into_iter().flatten() {
        let Some((name, fields)) = sent_action(sent) else { continue };
        match name.as_str() {
            "mark_step_complete" => completes_step = true,
            "mark_stage_complete" => signals.completes_stage = true,
            "complete_reflection" => {
                let reason = fields.get("reason").and_then(Value::as_str).unwrap_or_default();
                reason.clone_into(&mut signals.reason);
            }
            _ => {
                if signals.remarks.len() < MAX_REMARKS {
                    signals.remarks.push(sent.clone());
                }
                continue;
            }
        }
        found = true;
    }
    let is_over = |state: &String| {
        ["STEP_COMPLETE", "STAGE_COMPLETE", "WORKFLOW_COMPLETE"].iter().any(|word| state.starts_with(word))
    };
    let achieved = completes_step || signals.completes_stage || next_state.as_ref().is_some_and(is_over);
    found.then_some(JudgementSignals { achieved: Some(achieved), ..signals })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_judgement_is_read_from_its_actions_and_its_next_state() {
        for (payload, achieved, completes_stage, remarks) in [
            (
                json!({ "actions": [{ "type": "mark_step_complete" }, { "type": "complete_reflection", "reason": "r" }], "next_state": "STEP_COMPLETED" }),
                Some(true),
                false,
                0,
            ),
            (
                json!({ "actions": [{ "action": { "type": "complete-reflection", "reason": "r" } }], "next_state": "STEP_RUNNING" }),
                Some(false),
                false,
                0,
            ),
            (
                json!({ "actions": [{ "type": "mark_stage_complete" }, { "type": "complete_reflection", "reason": "r" }] }),
                Some(true),
                true,
                0,
            ),
            (
                json!({ "actions": [{ "type": "add-text", "content": "x" }, { "type": "complete_reflection", "reason": "r" }] }),
                Some(false),
                false,
                1,
            ),
            (json!({ "next_state": "workflow_complete", "actions": [] }), Some(true), false, 0),
        ] {
            let found = signals(payload.as_object().unwrap()).unwrap();
            assert_eq!(
                (found.achieved, found.completes_stage, found.remarks.len()),
                (achieved, completes_stage, remarks),
                "{payload}"
            );
        }
        // The actions of a complete response are no judgement.
        for payload in [
            json!({ "actions": [{ "type": "add", "content": "x" }], "target_achieved": true }),
            json!({ "actions": [7] }),
            json!({}),
        ] {
            assert_eq!(signals(payload.as_object().unwrap()), None, "{payload}");
        }
    }
}
