//! A cell, and what stands beside its text (docs/notebook.md).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// Text.
    #[default]
    Markdown,
    /// Code of the kernel's language.
    Code,
    /// What an agent thinks, shown while it does.
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
    /// It ran through.
    Ok,
    /// It raised an error.
    Error,
    /// It ran longer than it may and was interrupted.
    TimedOut,
    /// The kernel died of it, or beside it.
    Died,
    /// Somebody interrupted it, or the process that drove the session died.
    Interrupted,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its place in the notebook, from 1.
    pub number: u64,
    /// Its id, unique in the notebook.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: CellKind,
    pub content: String,
    /// What stands beside its text.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Of code that ran: what came of it, as nbformat 4.5 has outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Value>,
    /// Of code that ran: the kernel's count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<u64>,
    /// Of code that ran: how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<CellEnd>,
}

/// What stands beside the text of a cell. Fields that say nothing are left out wherever it is written.
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
    /// Of the heading of a chapter: `chapter-{n}`, or the id that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapter_id: Option<String>,
    /// Of the heading of a section: `section-{n}`, or the id that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    /// Of the heading of a chapter: which one, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapter_number: Option<u64>,
    /// Of the heading of a section: which one, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_number: Option<u64>,
    /// The chapter that it belongs to, where somebody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belongs_to_chapter: Option<String>,
    /// The section that it belongs to, where somebody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub belongs_to_section: Option<String>,
    /// The shot type that it was added with: `dialogue`, `observation`, `action`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shot_type: Option<String>,
    /// Of a thinking cell: whether the thinking came to its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finished_thinking: bool,
    /// Of a thinking cell: what is thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_text: Option<String>,
    /// Of a thinking cell: who thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Of a thinking cell: what is shown instead of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_text: Option<String>,
    /// Of a thinking cell: pieces of the thought.
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
