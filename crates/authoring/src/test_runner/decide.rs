//! `decide` of a test: answers the approval that the session waits for.

use crate::test_runner::conversation::{ConversationEnd, TestConversation};
use crate::test_runner::stop_reasons;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::test::dialogue::Decide;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};

impl TestConversation<'_> {
    /// `decide`: answers the approval that the session waits for.
    pub(crate) async fn decide(&mut self, decide: &Decide) -> Result<(), ConversationEnd> {
        stop_reasons::check_no_unchecked(self, decide.span)?;
        self.resume_if_stopped().await?;
        let since = self.log.count();
        let Some(session) = &mut self.session else { return Ok(()) };
        let Some(decision) = DecisionKind::parse(decide.decision) else { return Ok(()) };
        let values =
            decide.values.iter().map(|(name, value)| (name.clone(), ExactValue::from(value.clone()))).collect();
        let (by, comment) = (decide.by.clone(), decide.comment.clone());
        let mut request = None;
        if let Some(step) = &decide.step {
            let open = session.requests();
            let meant = open.iter().find(|(place, _)| place.action_id.as_ref() == Some(&step.value));
            let Some((_, meant)) = meant else {
                let here = open.iter().filter_map(|(place, _)| place.action_id.as_deref());
                let help = match open.is_empty() {
                    true => Message::word("the session waits for no decision"),
                    false => msg!("it waits at {}", Message::names(here)),
                };
                let message = msg!("the session waits for no decision at `{step}`", step = step.value);
                return Err(self.failure(decide.span, message, Message::default(), Message::default(), Some(help)));
            };
            request = Some(meant.id.clone());
        }
        match session.decide(ApprovalDecision { request, decision, by, comment, values }).await {
            Ok(()) => {}
            Err(DecisionError::Run(error)) => return Err(error.into()),
            Err(DecisionError::Refused { message, help, .. }) => {
                let message = msg!("the decision was not taken: {message}", message = message);
                return Err(self.failure(decide.span, message, Message::default(), Message::default(), help));
            }
        }
        self.since = since;
        self.read_lines();
        self.checked = self.lines.len();
        self.advance().await
    }
}
