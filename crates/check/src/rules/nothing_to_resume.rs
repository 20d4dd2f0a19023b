//! `nothing-to-resume`: a route resumes an action that has no further round.

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::source::diagnostic::Diagnostic;

const SLUG: &str = "nothing-to-resume";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for route in model.collected.exit_tables().flat_map(|table| &table.on_exit.routes) {
        let Some(then) = route.then.as_ref().filter(|then| then.value == RouteTarget::Resume) else { continue };
        let why = match route.reason.value.as_str() {
            "exit_criteria_met" => "the action has reached its goal",
            "max_rounds_reached" => "the action has no rounds left",
            "skipped" => "the action has not started",
            _ => continue,
        };
        let message =
            msg!("there is nothing to resume after `{}`: {why}", route.reason.value, why = Message::word(why));
        let help = "write `next` to continue with what follows, or `retry` to start the action again";
        findings.report(Diagnostic::warning(SLUG, message, model.file, then.span).with_help(help));
    }
}
