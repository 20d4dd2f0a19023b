//! Known fields of the language: they show that a line is meant as a field although YAML cannot read it as one.

/// Fields whose value is one word; they are often written on one line with another field.
const WORDS: &str = "\
    action_id|action_type|append|belongs_to_chapter|belongs_to_section|chapter_id|codecell_id|enum|event_type|get|\
    max_rounds|phase_id|required|rewind_to|scope|section_id|shot_type|stage_id|step_id|store_id|topic_id|type|value|var";

/// Fields whose value is text, in which a colon has no meaning.
const TEXTS: &str = "\
    agent_name|content|custom_text|description|exit|goal|phase_name|session_name|strategy|thinking_text|tone|\
    topic_name";

/// Fields whose value is a word or text.
const EITHER: &str = "define";

/// Fields with other values.
const OTHERS: &str = "\
    anchor_position|anchor_task_id|expand_depth|insert_after|insert_before|logical_id|max_depth|new_parent_id|new_parent_name|\
    node_budget|parent_id|plan_id|read_only|task_id|task_name|task_type|with_dependents|\
    actions|ai|approvers|arguments|ask_again|auto_debug|branch_failed|branches|budget|cases|chapter_number|compensate|completed_at|condition|config|connection_file|current_step|declare|delivery|depends_on|dialogue|else|\
    exit_code|exit_criteria|exit_criteria_met|exit_reason|expect|finally|finished_thinking|for_each|global_goal|goto|history|\
    idle_timeout|include_progress|input_variables|inputs|insert|is_chapter|is_section|is_step|\
    keep_debug_button_visible|kernel_id|max_actions|max_backoff|max_behaviors|max_bytes|max_parallel|max_retry_count|max_rounds_reached|\
    metadata|min_completeness_requirement|model_calls|monitor|monitor_feedback|need_output|on_change|slots_missing|token_env|not_contains|off_topic|\
    ok_codes|on_error|on_exit|on_failure|on_interrupted|on_resume|on_timeout|orchestration|output|outputs|phase_goal|phases|priority|\
    progress_suggestion|report|require_acknowledgment|retry_strategy|script|section_number|session|session_id|set|started_at|sub_tasks|\
    should_execute|skill|skipped|skill_goal|skill_id|skill_name|start_timeout|technique_id|technique_name|template_scheme|\
    test|text_array|then|time_budget|timed_out|todo_list|tools|topic_goal|topics|total_expected|trigger_id|triggers|\
    understanding_threshold|updated_steps|updated_workflow|user|user_blocked|user_id|when|workflow_id";

fn is_one_of(key: &str, names: &[&str]) -> bool {
    names.iter().flat_map(|names| names.split('|')).any(|name| name == key.trim())
}

pub(crate) fn is_field(key: &str) -> bool {
    is_one_of(key, &[WORDS, TEXTS, EITHER, OTHERS])
}

pub(crate) fn holds_word(key: &str) -> bool {
    is_one_of(key, &[WORDS, EITHER])
}

pub(crate) fn holds_text(key: &str) -> bool {
    is_one_of(key, &[TEXTS, EITHER])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// The keys of all mappings that a schema describes, and whether each is in current use anywhere.
    fn collect_keys(schema: &Value, into: &mut BTreeMap<String, bool>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (key, described) in properties {
                *into.entry(key.clone()).or_default() |= described.get("deprecated") != Some(&Value::Bool(true));
            }
        }
        match schema {
            Value::Object(parts) => parts.values().for_each(|part| collect_keys(part, into)),
            Value::Array(parts) => parts.iter().for_each(|part| collect_keys(part, into)),
            _ => {}
        }
    }

    #[test]
    fn the_fields_are_those_of_the_schemas() {
        let mut known = BTreeMap::new();
        for name in ["script", "skill", "test", "document"] {
            let text = std::fs::read_to_string(format!("../../schemas/{name}.schema.json")).unwrap();
            collect_keys(&serde_json::from_str(&text).unwrap(), &mut known);
        }
        for name in [WORDS, TEXTS, EITHER, OTHERS].into_iter().flat_map(|names| names.split('|')) {
            assert!(known.contains_key(name), "{name} is no field");
        }
        // A key that is a single word may also be a word of a text.
        for (name, current) in known {
            assert!(!current || !name.contains('_') || is_field(&name), "{name} is a field");
        }
    }
}
