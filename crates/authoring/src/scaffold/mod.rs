//! What a new project, script, skill, test or scheme is made of, and how it is written without touching what is there.

pub mod draft;
pub mod init;
pub mod languages;
pub mod names;
pub mod new;
pub mod opening_messages;
pub mod target_directory;
pub mod test;
pub mod texts;
