//! Expands the short replies of a case to complete ones, with every field that a model would write.

use serde_json::{Value, json};

/// `{ $ask: { … } }` is a valid reply to an `ai_ask` with these fields changed, `$say` one to an `ai_say`, `$monitor` one of a
/// monitor, `$plan` one of the orchestrator; anything else is returned unchanged.
pub(crate) fn complete_reply(reply: &Value) -> Value {
    if let Some(inner) = reply.get("reply") {
        let mut keyed = reply.clone();
        keyed["reply"] = complete_reply(inner);
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
    for (kind, mut full) in [("$monitor", advice), ("$plan", plan)] {
        if let Some(compare) = reply.get(kind) {
            full.as_object_mut().unwrap().extend(compare.as_object().unwrap().clone());
            return full;
        }
    }
    let metrics = |kind: &str| match kind {
        "$ask" => json!({
            "information_completeness": "还不完整", "user_engagement": "投入", "emotional_intensity": "平静", "reply_relevance": "切题",
        }),
        _ => json!({ "user_engagement": "投入", "emotional_intensity": "平静", "understanding_level": "大致理解" }),
    };
    for kind in ["$ask", "$say"] {
        if let Some(compare) = reply.get(kind) {
            let mut full = json!({
                "safety_risk": { "detected": false }, "content": "", "EXIT": "NO", "BRIEF": "", "metrics": metrics(kind),
                "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "平静", "crisis_signal": false },
            });
            full.as_object_mut().unwrap().extend(compare.as_object().unwrap().clone());
            return full;
        }
    }
    reply.clone()
}
