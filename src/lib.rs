//! `bcc-script`: an interpreter for declarative YAML scripts of model-driven conversations and workflows.

// The rooms, in the order in which a script passes through them.
pub mod archive;
pub mod value;
