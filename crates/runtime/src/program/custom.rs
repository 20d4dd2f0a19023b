//! Action kinds that a project defines: the table `kinds` of bcc-script.toml maps a name to a skill or a command
//! (docs/custom-kinds.md). A session uses the table as it was when the session started.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The name that `allow` of bcc-script.toml must list before a command runs.
pub const COMMAND: &str = "command";

/// The timeout of a command if the project sets none.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum number of names of kinds that one process stores. They are never freed; a project has at most
/// [`MAX_KINDS`] of them.
const MAX_NAMES: usize = 10_000;

/// The maximum number of kinds of one project.
pub const MAX_KINDS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomKind {
    /// The name, as `action_type` and as `action` of a model's reply.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "does")]
    pub body: CustomBody,
    /// Runs before it; if this fails, the action itself does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CustomBody>,
    /// Runs after it, even if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CustomBody>,
    /// The timeout of each of its commands; `DEFAULT_TIMEOUT` if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// What a kind of the project, or one of its hooks, runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomBody {
    /// A skill; the fields of the action are its inputs.
    Skill(String),
    /// A program with its arguments; the fields of the action are passed as JSON on its standard input.
    Command(Vec<String>),
}

impl CustomKind {
    /// The action and its hooks, in the order in which they run.
    pub fn parts(&self) -> impl Iterator<Item = &CustomBody> {
        self.before.iter().chain([&self.body]).chain(&self.after)
    }

    pub fn has_command(&self) -> bool {
        self.parts().any(|does| matches!(does, CustomBody::Command(_)))
    }

    pub fn skills(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|does| match does {
            CustomBody::Skill(skill) => Some(skill.as_str()),
            CustomBody::Command(_) => None,
        })
    }
}

/// The name with a static lifetime, as kinds, events and outcomes need it. Each name is stored once; beyond `MAX_NAMES`
/// names, which only many projects in one process can reach, all further ones are called `custom`.
pub(crate) fn intern(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(interned) = names.get(name) {
        return interned;
    }
    if names.len() >= MAX_NAMES {
        return "custom";
    }
    let interned: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(interned);
    interned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_interned_once() {
        assert!(std::ptr::eq(intern("tidy_up"), intern(&String::from("tidy_up"))));
    }

    #[test]
    fn a_kind_is_stored_in_a_format_that_later_releases_read() {
        let kind = CustomKind {
            name: "tidy".into(),
            description: None,
            body: CustomBody::Skill("tidying".into()),
            before: Some(CustomBody::Command(vec!["true".into()])),
            after: None,
            timeout: None,
        };
        let json = r#"{"name":"tidy","does":{"skill":"tidying"},"before":{"command":["true"]}}"#;
        assert_eq!(serde_json::to_string(&kind).unwrap(), json);
        assert_eq!(serde_json::from_str::<CustomKind>(json).unwrap(), kind);
        assert!(kind.has_command());
        assert_eq!(kind.skills().collect::<Vec<_>>(), ["tidying"]);
    }
}
