//! `ai_say`: sends the person a message, over several rounds until the person has understood it.

use crate::actions::conversation::config::{model_config, watched};
use crate::actions::conversation::rounds::{Conversation, OpeningMode, TurnTaking};
use crate::actions::monitors::conversation::AI_SAY;
use crate::program::action::Action;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::monitor::Monitor;
use crate::program::prompt::PromptNames;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};

const PROMPT: PromptNames = PromptNames { common: &PROMPT_NAMES, names: &["goal"], outputs: false };

pub(crate) struct AiSay;

impl Kind for AiSay {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "ai_say",
            schema: include_str!("../../../../schemas/actions/ai_say.json"),
            page: include_str!("../../../../docs/actions/ai_say.md"),
            exits: &["exit_criteria_met", "max_rounds_reached", "user_blocked"],
        }
    }

    fn prompt(&self) -> Option<PromptNames> {
        Some(PROMPT)
    }

    fn monitor(&self) -> Option<&'static dyn Monitor> {
        Some(&AI_SAY)
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let content = fields.required_content("content").and_then(|field| checker.text(&field));
        let goal = fields.text("goal").and_then(|field| checker.text(&field));
        let tone = fields.text("tone").and_then(|field| checker.text(&field));
        let exit = fields.text("exit").and_then(|field| checker.text(&field));
        let max_rounds = fields.integer("max_rounds", 1..=50).unwrap_or(1);
        let acknowledgment = fields.boolean("require_acknowledgment").unwrap_or(max_rounds > 1);
        if !acknowledgment {
            report_rounds_without_answer(fields, max_rounds);
        }
        let verbatim = fields.choice("delivery", &["model", "verbatim"]) == Some("verbatim");
        let understanding_threshold = fields.integer("understanding_threshold", 0..=100).unwrap_or(80);
        let model = model_config(self.name(), PROMPT, self.monitor(), fields, checker)?;
        let judges_answers = acknowledgment && max_rounds > 1;
        let exits: Option<&[&str]> = (!judges_answers).then_some(&["exit_criteria_met"]);
        let least_calls = u32::from(!verbatim) + u32::from(judges_answers);
        checker.describe(ActionProperties {
            max_rounds,
            needs_answer: acknowledgment,
            exits,
            min_calls: least_calls,
            ..ActionProperties::default()
        });
        let turn_taking = match (acknowledgment, max_rounds) {
            (false, _) => TurnTaking::NoAnswer,
            (true, 1) => TurnTaking::AnyAnswer,
            (true, _) => TurnTaking::JudgedAnswer,
        };
        let watched = watched(&model, exit.as_ref(), max_rounds);
        Some(Box::new(Conversation {
            model,
            content: content?,
            goal,
            tone,
            exit,
            max_rounds,
            opening: if verbatim { OpeningMode::Verbatim } else { OpeningMode::Model },
            turn_taking,
            understanding_threshold,
            watched,
            known_before: vec![],
            ask_again: false,
        }))
    }
}

/// Reports `require_acknowledgment: false` next to fields that are only used if the person answers. The older engine listened then.
fn report_rounds_without_answer(fields: &Fields<'_>, max_rounds: u32) {
    let Some(acknowledgment) = fields.entry("require_acknowledgment") else { return };
    let exit = fields.entry("exit");
    let other = if max_rounds > 1 { fields.entry("max_rounds") } else { exit };
    let Some(other) = other else { return };
    let message = msg!("nobody answers this action, so `{}` has no effect", other.key.value);
    let help = "to listen, as an older engine did with these fields, write `require_acknowledgment: true`; otherwise, remove the other field";
    let span = acknowledgment.value.span;
    let diagnostic = Diagnostic::warning("rounds-without-answer", message, fields.file(), span).with_help(help);
    let older = fields.has_legacy_spellings() || exit.is_some_and(|exit| exit.value.as_mapping().is_some());
    let fix = Fix::sure(msg!("write `require_acknowledgment: true`"), vec![Edit::replace(span, "true")]);
    fields.findings().report(diagnostic.with_fixes([fix.only_sure_if(older)]));
}
