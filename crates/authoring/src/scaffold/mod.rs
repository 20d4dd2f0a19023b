//! Creates new projects, scripts, skills and tests without changing existing files.

pub mod draft;
pub mod init;
pub mod languages;
pub mod names;
pub mod new;
pub mod opening_messages;
pub mod target_directory;
pub mod test;
pub mod texts;
