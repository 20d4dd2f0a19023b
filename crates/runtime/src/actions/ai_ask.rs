//! `ai_ask`: asks the person, asks follow-up questions until the exit criteria are met, and extracts variables.

use crate::actions::conversation::config::{Extracted, config_with, watched};
use crate::actions::conversation::rounds::{Conversation, OpeningMode, TurnTaking};
use crate::actions::monitors::conversation::AI_ASK;
use crate::program::action::Action;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::monitor::Monitor;
use crate::program::output::OutputVariable;
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
        let content = fields.required_content("content").and_then(|field| checker.text(&field));
        let tone = fields.text("tone").and_then(|field| checker.text(&field));
        let exit = fields.text("exit").and_then(|field| checker.text(&field));
        let max_rounds = fields.integer("max_rounds", 1..=50).unwrap_or(3);
        let required = fields.boolean("required").unwrap_or(false);
        let opening = opening(fields);
        let ask_again = fields.boolean("ask_again").unwrap_or(false);
        let wanted = (PROMPT, Extracted::OutputAndHeard);
        let mut model = config_with(self.name(), wanted, self.monitor(), fields, checker)?;
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
            min_calls: if opening == OpeningMode::Model { 2 } else { 1 },
            outputs: model.outputs.iter().filter(|output| !output.heard).count(),
            ..ActionProperties::default()
        });
        if required {
            // Set for each output, so that the prompt asks for it as well.
            model.outputs = model.outputs.into_required();
        }
        let known_before = if ask_again { vec![] } else { required_in_hear(&model.outputs, checker) };
        let watched = watched(&model, exit.as_ref(), max_rounds);
        Some(Box::new(Conversation {
            model,
            content: content?,
            goal: None,
            tone,
            exit,
            max_rounds,
            opening,
            turn_taking: TurnTaking::JudgedAnswer,
            understanding_threshold: 80,
            watched,
            known_before,
            ask_again,
        }))
    }
}

/// Reads `opening` and `delivery`, which says how the opening is worded.
fn opening(fields: &Fields<'_>) -> OpeningMode {
    let verbatim = fields.choice("delivery", &["model", "verbatim"]) == Some("verbatim");
    let listens = fields.choice("opening", &["ask", "listen"]) == Some("listen");
    if listens && verbatim {
        let span = fields.entry("delivery").map_or(fields.span(), |entry| entry.key.span);
        let message = "`delivery: verbatim` has no effect, because with `opening: listen` nothing is said first";
        fields.error("conflicting-fields", message, span, "remove one of the two");
    }
    match (listens, verbatim) {
        (true, _) => OpeningMode::Listen,
        (false, true) => OpeningMode::Verbatim,
        (false, false) => OpeningMode::Model,
    }
}

/// The required outputs, if `hear` lists around the action name all of them; else none.
fn required_in_hear(outputs: &[OutputVariable], checker: &dyn KindChecker) -> Vec<String> {
    let heard = checker.hear_outputs();
    let mut required: Vec<String> = Vec::new();
    for output in outputs.iter().filter(|output| output.required) {
        if heard.iter().all(|heard| heard.get != output.get) {
            return vec![];
        }
        required.push(output.get.clone());
    }
    required
}
