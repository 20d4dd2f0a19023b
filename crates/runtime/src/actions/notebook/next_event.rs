//! `next_event`: moves the machine of the notebook by an event of the author's own (000, NEXT_EVENT).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct NextEvent;

impl Kind for NextEvent {
    fn name(&self) -> &'static str {
        "next_event"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/next_event.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/next_event.md")
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
    reading.required_text("event_type");
    false
}
