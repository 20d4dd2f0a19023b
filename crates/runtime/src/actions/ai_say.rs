//! `ai_say`: tells the person something; over several rounds until they have understood.

use crate::actions::conversation::config::{model_config, watched};
use crate::actions::conversation::rounds::{Conversation, TurnTaking};
use crate::actions::monitors::conversation::AI_SAY;
use crate::program::action::Action;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{Described, Kind, KindChecker, KindInfo};
use crate::program::monitor::Monitor;
use crate::program::prompt::PromptOf;
use bcc_lang::script::fields::Fields;

const PROMPT: PromptOf = PromptOf { common: &PROMPT_NAMES, names: &["goal"], outputs: false };

pub struct AiSay;

impl Kind for AiSay {
    fn about(&self) -> KindInfo {
        KindInfo {
            name: "ai_say",
            schema: include_str!("../../../../schemas/actions/ai_say.json"),
            page: include_str!("../../../../docs/actions/ai_say.md"),
            exits: &["exit_criteria_met", "max_rounds_reached", "user_blocked"],
        }
    }

    fn prompt(&self) -> Option<PromptOf> {
        Some(PROMPT)
    }

    fn monitor(&self) -> Option<&'static dyn Monitor> {
        Some(&AI_SAY)
    }

    fn check(&self, fields: &Fields<'_>, checking: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let content = fields.required_words("content").and_then(|words| checking.text(&words));
        let goal = fields.words("goal").and_then(|words| checking.text(&words));
        let tone = fields.words("tone").and_then(|words| checking.text(&words));
        let exit = fields.words("exit").and_then(|words| checking.text(&words));
        let max_rounds = fields.integer("max_rounds", 1..=50).unwrap_or(1);
        let acknowledgment = fields.boolean("require_acknowledgment").unwrap_or(max_rounds > 1);
        let verbatim = fields.choice("delivery", &["model", "verbatim"]) == Some("verbatim");
        let understanding_threshold = fields.integer("understanding_threshold", 0..=100).unwrap_or(80);
        let model = model_config(self.name(), PROMPT, self.monitor(), fields, checking)?;
        let judges = acknowledgment && max_rounds > 1;
        let exits: Option<&[&str]> = (!judges).then_some(&["exit_criteria_met"]);
        let least_calls = u32::from(!verbatim) + u32::from(judges);
        let listens = acknowledgment;
        checking.describe(Described { max_rounds, listens, exits, least_calls, ..Described::default() });
        let listens = match (acknowledgment, max_rounds) {
            (false, _) => TurnTaking::Not,
            (true, 1) => TurnTaking::ForAnyAnswer,
            (true, _) => TurnTaking::AndJudges,
        };
        let watched = watched(&model, max_rounds);
        Some(Box::new(Conversation {
            model,
            content: content?,
            goal,
            tone,
            exit,
            max_rounds,
            verbatim,
            listens,
            understanding_threshold,
            watched,
        }))
    }
}
