//! `ai_ask`: asks the person, asks follow-up questions until the exit criteria are met, and extracts variables.

use crate::actions::conversation::config::{model_config, watched};
use crate::actions::conversation::rounds::{Conversation, TurnTaking};
use crate::actions::monitors::conversation::AI_ASK;
use crate::program::action::Action;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::monitor::Monitor;
use crate::program::prompt::PromptNames;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::span::Span;

const PROMPT: PromptNames = PromptNames { common: &PROMPT_NAMES, names: &[], outputs: true };

pub(crate) struct AiAsk;

impl Kind for AiAsk {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "ai_ask",
            schema: include_str!("../../../../schemas/actions/ai_ask.json"),
            page: include_str!("../../../../docs/actions/ai_ask.md"),
            exits: &["exit_criteria_met", "max_rounds_reached", "user_blocked", "off_topic"],
        }
    }

    fn prompt(&self) -> Option<PromptNames> {
        Some(PROMPT)
    }

    fn monitor(&self) -> Option<&'static dyn Monitor> {
        Some(&AI_ASK)
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let content = fields.required_text("content").and_then(|field| checker.text(&field));
        let tone = fields.text("tone").and_then(|field| checker.text(&field));
        let exit = fields.text("exit").and_then(|field| checker.text(&field));
        let max_rounds = fields.integer("max_rounds", 1..=50).unwrap_or(3);
        let required = fields.boolean("required").unwrap_or(false);
        let verbatim = fields.choice("delivery", &["model", "verbatim"]) == Some("verbatim");
        let mut model = model_config(self.name(), PROMPT, self.monitor(), fields, checker)?;
        let mut required_spans: Vec<Span> = Vec::new();
        required_spans.extend(fields.take("required").filter(|_| required).map(|node| node.span));
        required_spans.extend(model.required.iter().copied());
        // With one round, any answer that does not meet the criteria is the last one.
        let exits: Option<&[&str]> = (max_rounds == 1).then_some(&["exit_criteria_met", "max_rounds_reached"]);
        checker.describe(ActionProperties {
            max_rounds,
            needs_answer: true,
            required: required_spans,
            exits,
            min_calls: if verbatim { 1 } else { 2 },
            outputs: model.outputs.len(),
            ..ActionProperties::default()
        });
        if required {
            // Set for each output, so that the prompt asks for it as well.
            model.outputs = model.outputs.into_required();
        }
        let watched = watched(&model, exit.as_ref(), max_rounds);
        Some(Box::new(Conversation {
            model,
            content: content?,
            goal: None,
            tone,
            exit,
            max_rounds,
            verbatim,
            turn_taking: TurnTaking::JudgedAnswer,
            understanding_threshold: 80,
            watched,
        }))
    }
}
