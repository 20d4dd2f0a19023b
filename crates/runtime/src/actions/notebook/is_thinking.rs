//! `is_thinking`: an agent begins to think, in a cell of its own (000, IS_THINKING).

use crate::actions::notebook::kind::{EXITS, check};
use crate::actions::notebook::written::Reading;
use crate::program::action::Action;
use crate::program::kind::{Checking, Kind};
use bcc_lang::script::fields::Fields;

/// The kind.
pub struct IsThinking;

impl Kind for IsThinking {
    fn name(&self) -> &'static str {
        "is_thinking"
    }

    fn schema(&self) -> &'static str {
        include_str!("../../../../../schemas/actions/is_thinking.json")
    }

    fn page(&self) -> &'static str {
        include_str!("../../../../../docs/actions/is_thinking.md")
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
    for name in ["thinking_text", "agent_name", "custom_text"] {
        reading.text(name);
    }
    reading.texts("text_array");
    false
}
