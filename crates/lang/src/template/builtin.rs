//! The prompt templates that the binary carries, a plain table.

#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// `default`, or `custom/<scheme>`.
    pub place: &'static str,
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! builtin {
    ($place:literal, $name:literal) => {
        builtin!($place, $name, $place)
    };
    ($place:literal, $name:literal, $from:literal) => {
        Builtin {
            place: $place,
            name: $name,
            text: include_str!(concat!("../../../../_system/config/", $from, "/", $name)),
        }
    };
}

pub const BUILTINS: &[Builtin] = &[
    builtin!("default", "ai_ask_v1.md"),
    builtin!("default", "ai_say_v1.md"),
    builtin!("default", "ai_think_v1.md"),
    builtin!("default", "ai_ask_monitor_v1.md"),
    builtin!("default", "ai_say_monitor_v1.md"),
    builtin!("default", "topic_orchestrator_v1.md"),
    builtin!("default", "persona_v1.md"),
    builtin!("default", "exec_v1.md"),
    builtin!("default", "behavior_v1.md"),
    builtin!("default", "reflection_v1.md"),
    // The default templates are Chinese. Under this name they stand before the default ones of a project.
    builtin!("custom/chinese", "ai_ask_v1.md", "default"),
    builtin!("custom/chinese", "ai_say_v1.md", "default"),
    builtin!("custom/chinese", "ai_think_v1.md", "default"),
    builtin!("custom/chinese", "ai_ask_monitor_v1.md", "default"),
    builtin!("custom/chinese", "ai_say_monitor_v1.md", "default"),
    builtin!("custom/chinese", "topic_orchestrator_v1.md", "default"),
    builtin!("custom/chinese", "persona_v1.md", "default"),
    builtin!("custom/chinese", "exec_v1.md", "default"),
    builtin!("custom/chinese", "behavior_v1.md", "default"),
    builtin!("custom/chinese", "reflection_v1.md", "default"),
    builtin!("custom/english", "ai_ask_v1.md"),
    builtin!("custom/english", "ai_say_v1.md"),
    builtin!("custom/english", "ai_think_v1.md"),
    builtin!("custom/english", "ai_ask_monitor_v1.md"),
    builtin!("custom/english", "ai_say_monitor_v1.md"),
    builtin!("custom/english", "topic_orchestrator_v1.md"),
    builtin!("custom/english", "persona_v1.md"),
    builtin!("custom/english", "exec_v1.md"),
    builtin!("custom/english", "behavior_v1.md"),
    builtin!("custom/english", "reflection_v1.md"),
];

pub fn schemes() -> impl Iterator<Item = &'static str> {
    let mut seen: Vec<&str> = Vec::new();
    BUILTINS.iter().filter_map(move |file| {
        let scheme = file.place.strip_prefix("custom/").filter(|scheme| !seen.contains(scheme))?;
        seen.push(scheme);
        Some(scheme)
    })
}
