//! Which files of a project are documents of the language: how they are found, what people call them, and the skills among them.

pub mod documents;
pub mod names;
pub mod skills;
pub mod walk;
pub mod written_path;
