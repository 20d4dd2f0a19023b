//! What authors use beside running: checks of whole projects, fixes, tests, drawings, new projects.
//!
//! [`validate`] checks every document of a project; [`fix`] applies what can be fixed without asking; [`templates`] and
//! [`render`] show what a model would be sent; [`graph`] draws a script; [`test_runner`] runs conversation tests;
//! [`scaffold`] begins projects; [`schemas`] prints JSON Schemas; [`doctor`] examines the surroundings.
//!
//! This crate promises data, never printed text: reports are structs, and the command line shows them.

pub mod doctor;
pub mod fix;
pub mod graph;
pub mod render;
pub mod scaffold;
pub mod schemas;
pub mod templates;
pub mod test_runner;
pub mod validate;
