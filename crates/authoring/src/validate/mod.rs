//! `validate`: finds the files, then reads and checks them in parallel, each against its own project.

pub mod cache;
pub mod checked_project;
pub mod checked_projects;
pub mod configuration;
mod needs;
pub mod read_file;
pub mod request;
pub mod roots;
pub mod services;
pub mod templates;
pub mod tested_scripts;
pub mod threads;
pub mod validate;
pub mod watched_paths;
