//! `decide` of a test: answers the approval that the session waits for.

use crate::test_runner::conversation::{ConversationEnd, TestConversation};
use crate::test_runner::stop_reasons;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::test::dialogue::Decide;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::run::decisions::{ApprovalDecision, DecisionError};

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
        match session.decide(ApprovalDecision { request: None, decision, by, comment, values }).await {
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
