//! `bcc-script`: an interpreter for declarative YAML scripts of model-driven conversations and workflows.

pub mod cli;
