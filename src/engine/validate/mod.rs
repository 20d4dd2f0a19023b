//! `validate`: which files, read and checked in parallel, each against its own project.

pub mod configuration;
pub mod documents;
pub mod home;
pub mod homes;
pub mod memory;
pub mod names;
pub mod places;
pub mod read;
pub mod request;
pub mod roots;
pub mod skills;
pub mod templates;
pub mod tested;
pub mod threads;
pub mod validate;
pub mod walk;
pub mod written_path;
