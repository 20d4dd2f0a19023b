//! A snapshot of the environment variables of the process. Nothing else reads them, and tests can use their own.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Environment variables by name. Has no `Debug`, because they may contain keys.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this process, without variables that are not valid Unicode.
    pub fn of_process() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { variables: variables.collect() }
    }

    /// An environment with these variables.
    pub fn of(variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// The value of a variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on: set to anything but `0`, `false`, `no` or `off`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off"))
    }

    /// The variables that `is_wanted` accepts, by name and value.
    pub fn only(&self, is_wanted: impl Fn(&str, &str) -> bool) -> BTreeMap<String, String> {
        let wanted = self.variables.iter().filter(|(name, value)| is_wanted(name, value));
        wanted.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The configuration directory of `bcc-script` for this user: in `$XDG_CONFIG_HOME`, otherwise in `~/.config`. Taken only from
    /// this snapshot, so that an embedder or a test never writes to another home directory.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        let own = |directory: PathBuf| directory.join("bcc-script");
        let home = || Some(own(PathBuf::from(self.get("HOME")?).join(".config")));
        self.get("XDG_CONFIG_HOME").map(PathBuf::from).map(own).or_else(home)
    }
}
