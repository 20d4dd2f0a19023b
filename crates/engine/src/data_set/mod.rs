//! Many sessions as a data set for a study (docs/data-sets.md): tables, a codebook, transcripts, and projects for tools of
//! qualitative analysis.
//!
//! Each session is read once (`collect`) and kept in a file until all are read, because only then it is known which columns there
//! are. The memory that this takes depends on the scripts and on the largest session, not on the number of sessions.

pub(crate) mod catalog;
pub(crate) mod codebook;
pub(crate) mod collect;
pub(crate) mod columns;
pub(crate) mod csv_table;
pub mod export;
pub(crate) mod file_names;
pub(crate) mod follow_ups;
pub(crate) mod interview;
pub(crate) mod json_lines;
pub(crate) mod observed;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_table;
pub(crate) mod participants;
pub(crate) mod project_codes;
pub(crate) mod project_file;
pub(crate) mod read_me;
pub mod request;
pub(crate) mod spool;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod transcript;
pub(crate) mod xml;
pub(crate) mod zip_file;
