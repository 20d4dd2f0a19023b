//! Kinds that a project makes itself: the table `kinds` of bcc-script.toml maps a name to a skill or a command (000,
//! "register custom action"). A session is pinned to the table as it was when it began.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What `allow` of bcc-script.toml must name before a command runs.
pub const COMMAND: &str = "command";

/// How long a command may take when the project does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The most names of kinds that one process takes in. They are never given back; a project has at most
/// [`MOST_KINDS`] of them.
const MOST_NAMES: usize = 10_000;

/// The most kinds of one project.
pub const MOST_KINDS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomKind {
    /// The name, as `action_type` and as `action` of a model's reply.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub does: CustomBody,
    /// What is done before it; when this fails, it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CustomBody>,
    /// What is done after it, also when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<CustomBody>,
    /// How long each of its commands may take; without it, [`DEFAULT_TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// What a kind of the project, or a hook of it, does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomBody {
    /// It runs this skill; the fields of the action are its inputs.
    Skill(String),
    /// It runs this program with these arguments; the fields of the action are JSON on its standard input.
    Command(Vec<String>),
}

impl CustomKind {
    /// What it does, with its hooks, in the order in which they run.
    pub fn parts(&self) -> impl Iterator<Item = &CustomBody> {
        self.before.iter().chain([&self.does]).chain(&self.after)
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

/// The name as long as the process lives: kinds, events and outcomes name a kind so. One name is kept once; beyond
/// `MOST_NAMES` of them, which only many projects in one process can have, all are called alike.
pub fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = names.get(name) {
        return kept;
    }
    if names.len() >= MOST_NAMES {
        return "custom";
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        assert!(std::ptr::eq(kept("tidy_up"), kept(&String::from("tidy_up"))));
    }

    #[test]
    fn what_a_kind_does_is_kept_in_words_that_a_later_release_reads() {
        let kind = CustomKind {
            name: "tidy".into(),
            description: None,
            does: CustomBody::Skill("tidying".into()),
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
