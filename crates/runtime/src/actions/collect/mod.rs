//! `collect`: asks for several things, the first missing one at a time, and takes whatever an answer holds, in any order.

mod prompt;
mod rounds;
mod slots;

use crate::actions::collect::rounds::Collect;
use crate::actions::collect::slots::slot_fields;
use crate::actions::conversation::config::{Extracted, config_with};
use crate::program::action::Action;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::Fields;

const PROMPT: PromptNames =
    PromptNames { common: &PROMPT_NAMES, names: &["slots", "heard", "delivery", "last_question"], outputs: true };

pub(crate) struct CollectKind;

impl Kind for CollectKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "collect",
            schema: include_str!("../../../../../schemas/actions/collect.json"),
            page: include_str!("../../../../../docs/actions/collect.md"),
            exits: &["exit_criteria_met", "max_rounds_reached", "slots_missing", "user_blocked", "off_topic"],
        }
    }

    fn prompt(&self) -> Option<PromptNames> {
        Some(PROMPT)
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let tone = fields.text("tone").and_then(|field| checker.text(&field));
        let max_rounds = fields.integer("max_rounds", 1..=50).unwrap_or(3);
        let verbatim = fields.choice("delivery", &["model", "verbatim"]) == Some("verbatim");
        let has_slots = fields.required_list("slots").is_some();
        let model = config_with(self.name(), (PROMPT, Extracted::SlotsAndHeard), None, fields, checker);
        let slots = slot_fields(fields, verbatim, checker);
        let (model, slots) = (model?, slots?);
        let own = model.outputs.iter().filter(|output| !output.heard).count();
        checker.describe(ActionProperties {
            max_rounds,
            required: model.required.clone(),
            min_calls: 0,
            outputs: own,
            ..ActionProperties::default()
        });
        if !has_slots {
            return None;
        }
        // The outputs of slots come first, and each slot is one.
        let slots = slots.into_iter().zip(model.outputs.iter());
        let slots = slots.map(|(slot, output)| slot.with_output(output.clone())).collect();
        Some(Box::new(Collect { model, slots, tone, max_rounds, verbatim }))
    }
}
