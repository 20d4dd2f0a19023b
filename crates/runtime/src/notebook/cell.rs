//! A cell and its metadata (docs/notebook.md).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// Text.
    #[default]
    Markdown,
    /// Code in the language of the kernel.
    Code,
    /// Thoughts of an agent, shown while it thinks.
    Thinking,
}

impl CellKind {
    /// The name in payloads and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Code => "code",
            Self::Thinking => "thinking",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellEnd {
    /// It completed.
    Ok,
    /// It raised an error.
    Error,
    /// It exceeded its time limit and was interrupted.
    TimedOut,
    /// The kernel died while it ran.
    Died,
    /// It was interrupted, or the process that ran the session died.
    Interrupted,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its position in the notebook, from 1.
    pub number: u64,
    /// Its id, unique in the notebook.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: CellKind,
    pub content: String,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Who wrote the code, if not the author of the script or a person: `model` or `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<String>,
    /// The hash of the code that a person has approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// The outputs of code that ran, in the format of nbformat 4.5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Value>,
    /// The execution count of the kernel, for code that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// How the code ended, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<CellEnd>,
}

/// The metadata of a cell. Empty fields are not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Whether it is the heading of a step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_step: bool,
    /// Whether it is the heading of a chapter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_chapter: bool,
    /// Whether it is the heading of a section.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_section: bool,
    /// The id of the chapter that this heading starts: `chapter-{n}`, or the id that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapter_id: Option<String>,
    /// The id of the section that this heading starts: `section-{n}`, or the id that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    /// The number of the chapter that this heading starts, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapter_number: Option<u64>,
    /// The number of the section that this heading starts, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_number: Option<u64>,
    /// The chapter that it belongs to, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belongs_to_chapter: Option<String>,
    /// The section that it belongs to, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belongs_to_section: Option<String>,
    /// The shot type with which it was added: `dialogue`, `observation`, `action`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shot_type: Option<String>,
    /// Thinking cell: whether the thinking has ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finished_thinking: bool,
    /// Thinking cell: the thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_text: Option<String>,
    /// Thinking cell: the name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Thinking cell: the text that is shown instead of the thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_text: Option<String>,
    /// Thinking cell: pieces of the thought.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_array: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Metadata {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
