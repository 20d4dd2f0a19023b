//! `validate`: which files, read and checked in parallel, each against its own project.

pub mod configuration;
pub mod home;
pub mod homes;
pub mod memory;
pub mod places;
pub mod read;
pub mod request;
pub mod roots;
pub mod templates;
pub mod tested;
pub mod threads;
pub mod validate;
