//! Diagnostics as text: for people, as JSON, as SARIF, as commands of a GitHub workflow. A format changes how findings are
//! told, never which: only [`human::report`] leaves some out, and counts them.

pub mod github;
pub mod html;
pub mod human;
pub mod json;
pub mod redaction;
pub mod sarif;
pub mod truncation;
pub mod visible;
