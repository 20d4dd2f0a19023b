//! Renders diagnostics as text: for people, as JSON, as SARIF, as commands of a GitHub workflow. Every format contains all
//! diagnostics, except [`human::report`], which omits some and counts them.

pub mod github;
pub mod html;
pub mod human;
pub mod json;
pub mod markdown;
pub mod mermaid;
pub mod redaction;
pub mod sarif;
pub mod truncation;
pub mod visible;
