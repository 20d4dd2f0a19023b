//! `command`: runs a program (docs/actions/command.md). [`config`] reads it, [`run`] runs it, [`result`] reports what it gave.

pub mod config;
pub mod result;
pub mod run;

use crate::actions::command::config::CommandAction;
use crate::program::action::Action;
use crate::program::kind::{Kind, KindChecker, KindInfo};
use bcc_lang::script::fields::Fields;

pub(crate) struct CommandKind;

impl Kind for CommandKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "command",
            schema: include_str!("../../../../../schemas/actions/command.json"),
            page: include_str!("../../../../../docs/actions/command.md"),
            exits: &["exit_criteria_met", "failed", "timed_out"],
        }
    }

    fn step_options(&self) -> &'static [&'static str] {
        &["timeout", "retry"]
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        CommandAction::read(fields, checker).map(|action| Box::new(action) as Box<dyn Action>)
    }
}
