//! What is exported as a data set, and what came of it.

use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_store::rows::SessionFilter;

/// The form of the tables of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSetFormat {
    Csv,
    JsonLines,
    Parquet,
    /// A project for tools of qualitative analysis (REFI-QDA) instead of tables.
    Qdpx,
}

impl DataSetFormat {
    /// The extension of its tables. Those beside a project are CSV.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Csv | Self::Qdpx => "csv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

#[derive(Clone, Debug)]
pub struct DataSetRequest {
    pub filter: SessionFilter,
    pub format: DataSetFormat,
    /// Whether sensitive values and the ids of users are included.
    pub include_sensitive: bool,
    /// The language of the texts for people.
    pub language: Language,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct DataSetReport {
    pub sessions: u64,
    pub scripts: u64,
    /// How many sessions were left out because they give the answers of another one again.
    pub repeated: u64,
    /// How many sessions were left out because another one continues them from a step.
    pub continued: u64,
    /// How many of the sessions are forks of another one.
    pub forks: u64,
    /// How many of the sessions replay a recording.
    pub replays: u64,
    /// How many sessions could not be read.
    pub failed: u64,
    /// The first of these, with the reason.
    pub failures: Vec<(String, Message)>,
}

/// How many sessions that cannot be read are named.
pub(crate) const MAX_NAMED_FAILURES: usize = 100;
