//! The Chinese catalogue: one file per crate, which maps each literal of the source to its translation.

/// The files by crate; `help` has the texts of `--help`, `libraries` parts of errors of libraries. Each is a TOML table from English to
/// Chinese.
pub const FILES: [(&str, &str); 12] = [
    ("authoring", include_str!("chinese/authoring.toml")),
    ("check", include_str!("chinese/check.toml")),
    ("cli", include_str!("chinese/cli.toml")),
    ("engine", include_str!("chinese/engine.toml")),
    ("help", include_str!("chinese/help.toml")),
    ("lang", include_str!("chinese/lang.toml")),
    ("libraries", include_str!("chinese/libraries.toml")),
    ("llm", include_str!("chinese/llm.toml")),
    ("runtime", include_str!("chinese/runtime.toml")),
    ("server", include_str!("chinese/server.toml")),
    ("store", include_str!("chinese/store.toml")),
    ("tools", include_str!("chinese/tools.toml")),
];

/// What is never shown at the terminal: `literals`, and `files` of the source whose literals are not messages.
pub const UNTRANSLATED: &str = include_str!("chinese/untranslated.toml");

/// All literals with their translations. A file that cannot be parsed yields none; a test checks that all files can be parsed.
pub fn entries() -> impl Iterator<Item = (String, String)> {
    FILES.iter().flat_map(|(_, text)| parse_file(text))
}

pub fn parse_file(text: &str) -> Vec<(String, String)> {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let text = |value| if let toml::Value::String(chinese) = value { Some(chinese) } else { None };
    table.into_iter().filter_map(|(english, value)| Some((english, text(value)?))).collect()
}
