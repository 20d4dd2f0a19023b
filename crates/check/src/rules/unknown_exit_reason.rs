//! `unknown-exit-reason`: a table of routes names a reason that does not exist.

use crate::reasons::REASONS;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;
use std::sync::Arc;

const SLUG: &str = "unknown-exit-reason";

/// Common wrong names of reasons.
const REASON_ALIASES: [(&str, &str); 15] = [
    ("completed", "exit_criteria_met"),
    ("complete", "exit_criteria_met"),
    ("success", "exit_criteria_met"),
    ("done", "exit_criteria_met"),
    ("exit", "exit_criteria_met"),
    ("blocked", "user_blocked"),
    ("stuck", "user_blocked"),
    ("timeout", "timed_out"),
    ("failure", "failed"),
    ("fail", "failed"),
    ("max_rounds", "max_rounds_reached"),
    ("refused", "rejected"),
    ("denied", "rejected"),
    ("exception", "error"),
    ("max_turns_reached", "max_rounds_reached"),
];

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: true, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for route in model.collected.exit_tables().flat_map(|table| &table.on_exit.routes) {
        findings.extend(unknown(&route.reason, model.file));
    }
}

/// Reports the reason if it does not exist.
pub fn unknown(reason: &Spanned<String>, file: &Arc<SourceFile>) -> Option<Diagnostic> {
    let written = reason.value.as_str();
    if REASONS.contains(&written) {
        return None;
    }
    let message = msg!("there is no exit reason `{}`", shortened(written));
    let diagnostic = Diagnostic::error(SLUG, message, file, reason.span);
    let plain = written.to_lowercase().replace(['-', ' '], "_");
    let other = REASON_ALIASES.iter().find(|(other, _)| *other == plain).map(|(_, ours)| *ours);
    let listed = || msg!("available exit reasons: {}", Message::names(REASONS));
    Some(diagnostic.with_suggestion_or(other.or_else(|| near_miss(written, REASONS)), listed))
}
