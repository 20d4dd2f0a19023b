//! Finds the documents of a project, its skills, and the names that reports use for files.

pub mod documents;
pub mod names;
pub mod skills;
pub mod walk;
pub mod written_path;
