//! What was looked at, and how it is.

use serde_json::{Value, json};

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It works.
    Ok,
    /// It works, and there is something to know.
    Note,
    /// It does not work.
    Problem,
}

impl State {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: a stable word.
    pub about: &'static str,
    /// How it is.
    pub state: State,
    /// What was seen. Shows no key and nothing that anybody said.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    /// Something that works.
    pub fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, state: State::Ok, message: message.into(), help: None }
    }

    /// Something to know.
    pub fn note(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, state: State::Note, message: message.into(), help: None }
    }

    /// Something that does not work.
    pub fn problem(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, state: State::Problem, message: message.into(), help: None }
    }

    /// The same with what to do.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The same with what to do, where something can be done.
    #[must_use]
    pub fn with_any_help(self, help: Option<&str>) -> Self {
        Self { help: help.map(str::to_owned), ..self }
    }

    /// As JSON (docs/doctor.md).
    pub fn json(&self) -> Value {
        json!({ "about": self.about, "state": self.state.name(), "message": self.message, "help": self.help })
    }
}
