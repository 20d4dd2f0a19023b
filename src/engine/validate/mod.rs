//! `validate`: which files, read and checked in parallel, each against its own project.

pub mod documents;
pub mod home;
pub mod homes;
pub mod names;
pub mod places;
pub mod read;
pub mod request;
pub mod templates;
pub mod validate;
pub mod walk;
