//! `update_stage_steps`: gives a stage of the plan other steps (000, UPDATE_STEP_LIST).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct UpdateStageSteps;

impl Kind for UpdateStageSteps {
    fn name(&self) -> &'static str {
        "update_stage_steps"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/update_stage_steps.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/update_stage_steps.md")
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
    reading.required_text("stage_id");
    reading.steps("updated_steps");
    false
}
