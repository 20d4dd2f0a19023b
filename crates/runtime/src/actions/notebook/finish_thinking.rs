//! `finish_thinking`: the thinking that is under way comes to its end (000, FINISH_THINKING).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct FinishThinking;

impl Kind for FinishThinking {
    fn name(&self) -> &'static str {
        "finish_thinking"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/finish_thinking.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/finish_thinking.md")
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
    let _ = reading;
    false
}
