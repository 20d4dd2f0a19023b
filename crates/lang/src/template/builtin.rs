//! The prompt templates that are embedded in the binary.

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
        "ai_ask_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md";
    "custom/chinese" from "default":
        "ai_ask_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md";
    "custom/english" from "custom/english":
        "ai_ask_v1.md" "ai_say_v1.md" "ai_think_v1.md" "ai_ask_monitor_v1.md" "ai_say_monitor_v1.md"
        "topic_orchestrator_v1.md" "persona_v1.md" "exec_v1.md" "behavior_v1.md" "reflection_v1.md";
};

pub fn schemes() -> impl Iterator<Item = &'static str> {
    let mut seen: Vec<&str> = Vec::new();
    BUILTINS.iter().filter_map(move |file| {
        let scheme = file.place.strip_prefix("custom/").filter(|scheme| !seen.contains(scheme))?;
        seen.push(scheme);
        Some(scheme)
    })
}
