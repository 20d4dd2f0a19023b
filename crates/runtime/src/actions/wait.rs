//! `wait`: waits for a time, without a process.

use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::script::time::time;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::template::text::Text;
use bcc_lang::value::instant::{is_instant, later};

use crate::program::action::Action;
use crate::program::decision::{DecisionRequest, RequestKind};
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;

pub(crate) struct WaitKind;

/// The longest time that an action may wait: ten years.
const MAX_WAIT: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

enum Wait {
    For(Duration),
    /// A point in time, as the author's text renders.
    Until(Text),
}

impl Kind for WaitKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "wait",
            schema: include_str!("../../../../schemas/actions/wait.json"),
            page: include_str!("../../../../docs/actions/wait.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let (written_for, written_until) = (fields.entry("for"), fields.entry("until"));
        let duration = written_for.and_then(|_| time(fields, "for", MAX_WAIT));
        let until = fields.text("until").and_then(|field| moment(&field, fields, checker));
        checker.describe(ActionProperties { max_rounds: 1, ..ActionProperties::default() });
        match (written_for, written_until) {
            (Some(_), Some(until)) => {
                let message = msg!("{} has both `for` and `until`", fields.subject());
                let diagnostic = Diagnostic::error("conflicting-fields", message, fields.file(), until.key.span);
                fields.findings().report(diagnostic.with_help("keep one: a duration, or a point in time"));
                None
            }
            (None, None) => {
                let message = msg!("{} does not specify how long", fields.subject());
                let diagnostic = Diagnostic::error("missing-key", message, fields.file(), fields.span());
                let help = "add `for:` with a duration such as `2h`, or `until:` with a point in time";
                fields.report_missing(&["for", "until"], diagnostic.with_help(help));
                None
            }
            _ => duration.map(Wait::For).or(until.map(Wait::Until)).map(|wait| Box::new(wait) as Box<dyn Action>),
        }
    }
}

const TIME_HELP: &str = "it must be like `2026-12-01 09:00`, `2026-12-01` or `2026-12-01T09:00:00Z`";

/// The text of `until`. One without placeholders must be a point in time.
fn moment(field: &TextField, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Text> {
    let text = checker.text(field)?;
    if text.plain().is_none_or(is_instant) {
        return Some(text);
    }
    let message = msg!("`until` of {} is not a point in time", fields.subject());
    let diagnostic = Diagnostic::error("wrong-type", message, fields.file(), field.node.span);
    fields.findings().report(diagnostic.with_help(TIME_HELP));
    None
}

#[async_trait]
impl Action for Wait {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        if turn.decision.is_some() {
            return Ok(Flow::done(Outcome::done(ExitReason::ExitCriteriaMet)));
        }
        let clock = &turn.services.clock;
        let due = match self {
            Self::For(duration) => later(&clock.at(turn.last_seq + 1), *duration),
            Self::Until(text) => {
                let written = turn.text(text, &turn.names(1))?;
                let due = clock.instant(&written);
                if due.is_none() {
                    return Err(ActionError::Failed {
                        code: "not-a-time",
                        message: Message::word("`until` is not a point in time"),
                        help: Some(Message::word(TIME_HELP)),
                    });
                }
                due
            }
        };
        // Where time does not pass, as with `--clock`, nobody would ever come back here.
        let Some(due) = due.filter(|due| clock.remaining(due).is_some_and(|left| !left.is_zero())) else {
            return Ok(Flow::done(Outcome::done(ExitReason::ExitCriteriaMet)));
        };
        Ok(Flow::Request(Box::new(DecisionRequest {
            kind: RequestKind::Time,
            prompt: String::new(),
            schema: None,
            decisions: vec![],
            approvers: vec![],
            due_at: Some(due),
        })))
    }
}
