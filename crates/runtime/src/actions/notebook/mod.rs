//! The notebook kinds of 000, one file each, and the one way in which an action on the notebook is carried out, whoever sent it.

pub mod add;
pub mod custom;
pub mod debug;
pub mod end_phase;
pub mod exec;
pub mod finish_thinking;
pub mod home;
pub mod is_thinking;
pub mod kind;
pub mod new_chapter;
pub mod new_section;
pub mod next_event;
pub mod perform;
pub mod rerun;
pub mod run;
pub mod update_stage_steps;
pub mod update_title;
pub mod update_workflow;
pub mod written;
