//! `new_section`: begins a section of the notebook (000, NEW_SECTION).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct NewSection;

impl Kind for NewSection {
    fn name(&self) -> &'static str {
        "new_section"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/new_section.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/new_section.md")
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
    reading.required_text("content");
    reading.metadata(false)
}
