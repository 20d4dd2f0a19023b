//! Tools for script authors: checks of whole projects, fixes, tests, graphs and scaffolding.
//!
//! [`validate`] checks all documents of a project; [`fix`] applies safe fixes; [`templates`] and [`render`] show what a
//! model is sent; [`graph`] draws a script; [`test_runner`] runs conversation tests; [`scaffold`] creates projects and
//! files; [`schemas`] provides JSON Schemas; [`doctor`] checks the environment.
//!
//! This crate returns data and prints nothing: reports are structs, which the command line displays.

pub mod doctor;
pub mod fix;
pub mod graph;
pub mod render;
pub mod scaffold;
pub mod schemas;
pub mod templates;
pub mod test_runner;
pub mod validate;
