//! The Chinese catalogue: a file for each room, from the literal of the source to what is said.

/// The files: the room, and what stands in it. Each is a TOML table from literals to Chinese; its table `[joined]` holds texts
/// that the code puts together from pieces, and that therefore are no literals.
pub const FILES: [(&str, &str); 17] = [
    ("actions", include_str!("chinese/actions.toml")),
    ("archive", include_str!("chinese/archive.toml")),
    ("check", include_str!("chinese/check.toml")),
    ("cli", include_str!("chinese/cli.toml")),
    ("effects", include_str!("chinese/effects.toml")),
    ("engine", include_str!("chinese/engine.toml")),
    ("help", include_str!("chinese/help.toml")),
    ("model", include_str!("chinese/model.toml")),
    ("notebook", include_str!("chinese/notebook.toml")),
    ("program", include_str!("chinese/program.toml")),
    ("prompt", include_str!("chinese/prompt.toml")),
    ("reply", include_str!("chinese/reply.toml")),
    ("run", include_str!("chinese/run.toml")),
    ("schema", include_str!("chinese/schema.toml")),
    ("script", include_str!("chinese/script.toml")),
    ("source", include_str!("chinese/source.toml")),
    ("value", include_str!("chinese/value.toml")),
];

/// What no person reads at the terminal: `literals`, and `files` of the source whose literals are none of its words.
pub const UNTRANSLATED: &str = include_str!("chinese/untranslated.toml");

/// All literals with their Chinese. A file that cannot be read gives none; a test keeps them readable.
pub fn entries() -> impl Iterator<Item = (String, String)> {
    FILES.iter().flat_map(|(_, text)| of_file(text))
}

/// Those of one file.
pub fn of_file(text: &str) -> Vec<(String, String)> {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let mut found = Vec::new();
    for (english, value) in table {
        match value {
            toml::Value::String(chinese) => found.push((english, chinese)),
            toml::Value::Table(joined) => {
                let texts = joined.into_iter().filter_map(|(english, value)| match value {
                    toml::Value::String(chinese) => Some((english, chinese)),
                    _ => None,
                });
                found.extend(texts);
            }
            _ => {}
        }
    }
    found
}
