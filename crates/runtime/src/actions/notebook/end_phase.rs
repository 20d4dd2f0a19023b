//! `end_phase`: a step of the plan is completed (000, COMPLETE_STEP).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct EndPhase;

impl Kind for EndPhase {
    fn name(&self) -> &'static str {
        "end_phase"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/end_phase.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/end_phase.md")
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
    reading.text("step_id");
    false
}
