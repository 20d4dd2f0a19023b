//! Fields of the language, by which a line shows that it is meant as one, although YAML cannot read it as such.

/// What stands behind the colon of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Word,
    /// A text, in which a colon means nothing.
    Text,
    Either,
    Other,
}

/// The fields, in the order of their names.
const FIELDS: &[(&str, Holds)] = &[
    ("action_id", Holds::Word),
    ("action_type", Holds::Word),
    ("actions", Holds::Other),
    ("agent_name", Holds::Text),
    ("ai", Holds::Other),
    ("append", Holds::Word),
    ("auto_debug", Holds::Other),
    ("belongs_to_chapter", Holds::Word),
    ("belongs_to_section", Holds::Word),
    ("branch_failed", Holds::Other),
    ("budget", Holds::Other),
    ("cases", Holds::Other),
    ("chapter_id", Holds::Word),
    ("chapter_number", Holds::Other),
    ("codecell_id", Holds::Word),
    ("condition", Holds::Other),
    ("config", Holds::Other),
    ("content", Holds::Text),
    ("custom_text", Holds::Text),
    ("declare", Holds::Other),
    ("define", Holds::Either),
    ("delivery", Holds::Other),
    ("description", Holds::Text),
    ("dialogue", Holds::Other),
    ("else", Holds::Other),
    ("enum", Holds::Word),
    ("event_type", Holds::Word),
    ("exit", Holds::Text),
    ("exit_criteria", Holds::Other),
    ("exit_criteria_met", Holds::Other),
    ("exit_reason", Holds::Other),
    ("expect", Holds::Other),
    ("finished_thinking", Holds::Other),
    ("for_each", Holds::Other),
    ("get", Holds::Word),
    ("global_goal", Holds::Other),
    ("goal", Holds::Text),
    ("goto", Holds::Other),
    ("history", Holds::Other),
    ("idle_timeout", Holds::Other),
    ("include_progress", Holds::Other),
    ("input_variables", Holds::Other),
    ("inputs", Holds::Other),
    ("insert", Holds::Other),
    ("is_chapter", Holds::Other),
    ("is_section", Holds::Other),
    ("is_step", Holds::Other),
    ("keep_debug_button_visible", Holds::Other),
    ("max_actions", Holds::Other),
    ("max_behaviors", Holds::Other),
    ("max_retry_count", Holds::Other),
    ("max_rounds", Holds::Word),
    ("max_rounds_reached", Holds::Other),
    ("metadata", Holds::Other),
    ("min_completeness_requirement", Holds::Other),
    ("model_calls", Holds::Other),
    ("monitor", Holds::Other),
    ("monitor_feedback", Holds::Other),
    ("need_output", Holds::Other),
    ("not_contains", Holds::Other),
    ("off_topic", Holds::Other),
    ("on_error", Holds::Other),
    ("on_exit", Holds::Other),
    ("on_interrupted", Holds::Other),
    ("on_resume", Holds::Other),
    ("orchestration", Holds::Other),
    ("output", Holds::Other),
    ("outputs", Holds::Other),
    ("phase_goal", Holds::Other),
    ("phase_id", Holds::Word),
    ("phase_name", Holds::Text),
    ("phases", Holds::Other),
    ("priority", Holds::Other),
    ("progress_suggestion", Holds::Other),
    ("require_acknowledgment", Holds::Other),
    ("required", Holds::Word),
    ("retry_strategy", Holds::Other),
    ("scope", Holds::Word),
    ("script", Holds::Other),
    ("section_id", Holds::Word),
    ("section_number", Holds::Other),
    ("session", Holds::Other),
    ("session_id", Holds::Other),
    ("session_name", Holds::Text),
    ("set", Holds::Other),
    ("shot_type", Holds::Word),
    ("should_execute", Holds::Other),
    ("skill", Holds::Other),
    ("skill_goal", Holds::Other),
    ("skill_id", Holds::Other),
    ("skill_name", Holds::Other),
    ("stage_id", Holds::Word),
    ("start_timeout", Holds::Other),
    ("step_id", Holds::Word),
    ("store_id", Holds::Word),
    ("strategy", Holds::Text),
    ("technique_id", Holds::Other),
    ("technique_name", Holds::Other),
    ("template_scheme", Holds::Other),
    ("test", Holds::Other),
    ("text_array", Holds::Other),
    ("then", Holds::Other),
    ("thinking_text", Holds::Text),
    ("time_budget", Holds::Other),
    ("timed_out", Holds::Other),
    ("todo_list", Holds::Other),
    ("tone", Holds::Text),
    ("topic_goal", Holds::Other),
    ("topic_id", Holds::Word),
    ("topic_name", Holds::Text),
    ("topics", Holds::Other),
    ("total_expected", Holds::Other),
    ("trigger_id", Holds::Other),
    ("triggers", Holds::Other),
    ("type", Holds::Word),
    ("understanding_threshold", Holds::Other),
    ("updated_steps", Holds::Other),
    ("updated_workflow", Holds::Other),
    ("user", Holds::Other),
    ("user_blocked", Holds::Other),
    ("user_id", Holds::Other),
    ("value", Holds::Word),
    ("var", Holds::Word),
    ("when", Holds::Other),
    ("workflow_id", Holds::Other),
];

fn of(key: &str) -> Option<Holds> {
    let found = FIELDS.binary_search_by_key(&key.trim(), |(name, _)| *name).ok()?;
    FIELDS.get(found).map(|(_, holds)| *holds)
}

pub(crate) fn is_field(key: &str) -> bool {
    of(key).is_some()
}

pub(crate) fn holds_word(key: &str) -> bool {
    matches!(of(key), Some(Holds::Word | Holds::Either))
}

pub(crate) fn holds_text(key: &str) -> bool {
    matches!(of(key), Some(Holds::Text | Holds::Either))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// The keys of all mappings that a schema describes, with whether some place has them in use today.
    fn keys(schema: &Value, into: &mut BTreeMap<String, bool>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, described) in properties {
                *into.entry(key.clone()).or_default() |= described.get("deprecated") != Some(&Value::Bool(true));
            }
        }
        match schema {
            Value::Object(parts) => parts.values().for_each(|part| keys(part, into)),
            Value::Array(parts) => parts.iter().for_each(|part| keys(part, into)),
            _ => {}
        }
    }

    #[test]
    fn the_fields_are_those_of_the_schemas() {
        assert!(FIELDS.is_sorted_by_key(|(name, _)| *name));
        let mut known = BTreeMap::new();
        for name in ["script", "skill", "test", "document"] {
            let text = std::fs::read_to_string(format!("../../schemas/{name}.schema.json")).unwrap();
            keys(&serde_json::from_str(&text).unwrap(), &mut known);
        }
        for (name, _) in FIELDS {
            assert!(known.contains_key(*name), "{name} is no field");
        }
        // What is one word may be a word of a text.
        for (name, today) in known {
            assert!(!today || !name.contains('_') || is_field(&name), "{name} is a field");
        }
    }
}
