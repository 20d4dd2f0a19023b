//! `update_workflow`: gives the session another plan (000, UPDATE_WORKFLOW).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct UpdateWorkflow;

impl Kind for UpdateWorkflow {
    fn name(&self) -> &'static str {
        "update_workflow"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/update_workflow.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/update_workflow.md")
    }

    fn exits(&self) -> &'static [&'static str] {
        &EXITS
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn Checking) -> Option<Box<dyn Action>> {
        check(self.name(), fields, checking, read)
    }
}

/// Reads its config. Whether its code runs.
fn read(reading: &mut Reading<'_, '_>) -> bool {
    reading.plan("updated_workflow");
    false
}
