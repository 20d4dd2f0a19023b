//! `ai_act`: a person talks, a model answers with a message and with operations on plans and tools, and these are carried out.

use crate::actions::structured::config::{ActConfig, PROMPTS};
use crate::program::action::Action;
use crate::program::kind::{Kind, KindChecker, KindInfo};
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::Fields;

pub(crate) struct AiAct;

impl Kind for AiAct {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "ai_act",
            schema: include_str!("../../../../schemas/actions/ai_act.json"),
            page: include_str!("../../../../docs/actions/ai_act.md"),
            exits: &["exit_criteria_met", "max_rounds_reached"],
        }
    }

    fn prompts(&self) -> &'static [(&'static str, PromptNames)] {
        &PROMPTS
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        ActConfig::read(fields, checker).map(|config| Box::new(config) as Box<dyn Action>)
    }
}
