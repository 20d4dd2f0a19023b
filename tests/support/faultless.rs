//! Replies as a case writes them, in short, and as a model would: with every field.

use serde_json::{Value, json};

/// `{ $ask: { … } }` is a faultless reply to an `ai_ask` with these fields changed, `$say` one to an `ai_say`, `$monitor` one of a
/// monitor, `$plan` one of the orchestrator; anything else is what it is.
pub(crate) fn whole(reply: &Value) -> Value {
    if let Some(inner) = reply.get("reply") {
        let mut keyed = reply.clone();
        keyed["reply"] = whole(inner);
        return keyed;
    }
    let advice = json!({
        "intervention_needed": false, "intervention_reason": "normal", "intervention_level": "action_feedback",
        "strategy_suggestion": "continue", "feedback_for_action": null, "modified_approach": null,
        "orchestration_needed": false, "orchestration_reason": null, "suggested_orchestration": null,
    });
    let plan = json!({
        "action": "none", "target_position": null, "new_action": null, "modifications": null, "order": null, "reason": "",
    });
    for (kind, mut whole) in [("$monitor", advice), ("$plan", plan)] {
        if let Some(changed) = reply.get(kind) {
            whole.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
            return whole;
        }
    }
    let metrics = |kind: &str| match kind {
        "$ask" => json!({
            "information_completeness": "还不完整", "user_engagement": "投入", "emotional_intensity": "平静", "reply_relevance": "切题",
        }),
        _ => json!({ "user_engagement": "投入", "emotional_intensity": "平静", "understanding_level": "大致理解" }),
    };
    for kind in ["$ask", "$say"] {
        if let Some(changed) = reply.get(kind) {
            let mut whole = json!({
                "safety_risk": { "detected": false }, "content": "", "EXIT": "NO", "BRIEF": "", "metrics": metrics(kind),
                "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "平静", "crisis_signal": false },
            });
            whole.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
            return whole;
        }
    }
    reply.clone()
}
