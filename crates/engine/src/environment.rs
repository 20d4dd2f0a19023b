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

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// All variables except hidden ones, for a program that is started.
    pub fn without(&self, hidden: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
        let shown = self.variables.iter().filter(|(name, _)| !hidden(name));
        shown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The configuration directory of `bcc-script` for this user: in `$XDG_CONFIG_HOME` or the default of the platform.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        if let Some(home) = self.get("XDG_CONFIG_HOME") {
            return Some(PathBuf::from(home).join("bcc-script"));
        }
        use etcetera::BaseStrategy;
        Some(etcetera::choose_base_strategy().ok()?.config_dir().join("bcc-script"))
    }
}
