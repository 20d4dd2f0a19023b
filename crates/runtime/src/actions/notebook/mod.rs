//! The notebook kinds of docs/notebook.md, and the code that performs actions on the notebook from all sources.

pub mod author_action;
pub mod custom;
pub mod debug;
pub mod exec;
pub mod initial_plan;
pub mod kind;
pub mod perform;
pub mod plain;
pub mod rerun;
pub mod review;
pub mod run;
