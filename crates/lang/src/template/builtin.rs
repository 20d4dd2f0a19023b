//! The prompt templates that are embedded in the binary.

use crate::template::front_matter::{FallbackTexts, split};

#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// `default`, or `custom/<scheme>`.
    pub place: &'static str,
    pub name: &'static str,
    pub text: &'static str,
}

/// The templates of the folder `$from` as templates of `$place`.
macro_rules! builtin {
    ($($place:literal from $from:literal: $($name:literal)*;)*) => {
        &[$($(Builtin {
            place: $place,
            name: $name,
            text: include_str!(concat!("../../../../_system/config/", $from, "/", $name)),
        },)*)*]
    };
}

// The default templates are Chinese. Under `custom/chinese` they take precedence over the default ones of a project.
pub const BUILTINS: &[Builtin] = builtin! {
    "default" from "default":
        "ai_ask_v1.md" "collect_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md"
        "structured_actions_v1.md" "plan_create_v1.md" "plan_decompose_v1.md" "plan_task_v1.md" "workflow_plan_v1.md";
    "custom/chinese" from "default":
        "ai_ask_v1.md" "collect_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md"
        "structured_actions_v1.md" "plan_create_v1.md" "plan_decompose_v1.md" "plan_task_v1.md" "workflow_plan_v1.md";
    "custom/english" from "custom/english":
        "ai_ask_v1.md" "collect_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md"
        "structured_actions_v1.md" "plan_create_v1.md" "plan_decompose_v1.md" "plan_task_v1.md" "workflow_plan_v1.md";
};

/// The texts that version 1 of the built-in template `name` sends instead of a reply, in Chinese or English; empty for a template
/// without such texts.
pub fn fallbacks(name: &str, is_chinese: bool) -> FallbackTexts {
    let place = if is_chinese { "custom/chinese" } else { "custom/english" };
    let file = format!("{name}_v1.md");
    let found = BUILTINS.iter().find(|builtin| builtin.place == place && builtin.name == file);
    found.and_then(|builtin| split(builtin.text).ok()).map(|parts| parts.front.fallbacks()).unwrap_or_default()
}

pub fn schemes() -> impl Iterator<Item = &'static str> {
    let mut seen: Vec<&str> = Vec::new();
    BUILTINS.iter().filter_map(move |file| {
        let scheme = file.place.strip_prefix("custom/").filter(|scheme| !seen.contains(scheme))?;
        seen.push(scheme);
        Some(scheme)
    })
}
