//! `add`: adds a cell to the notebook (000, ADD_ACTION).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::{Reading, SHOT_TYPES};
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct Add;

impl Kind for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/add.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/add.md")
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
    // What its text is, is said by the shot type: code is not read as a text for people.
    let code = reading.choice("shot_type", &SHOT_TYPES) == Some("action");
    reading.required_content("content", code);
    reading.text("store_id");
    reading.metadata(code)
}
