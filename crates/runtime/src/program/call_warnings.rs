//! What an author is warned about a call of a model.

use crate::program::event::{Event, ModelCall};
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_llm::model::reply::SkippedModel;

impl ModelCall {
    /// Warnings about the call for the author: that another model answered, that the reply was truncated.
    pub fn warnings(&self) -> Vec<Event> {
        let mut warnings = Vec::new();
        // If no model answered, the error lists them all.
        let answered = self.parse_retry_count.is_some();
        if let Some(first) = self.skipped_models.first().filter(|_| answered) {
            let reason = |skipped: &SkippedModel| msg!("`{}` did not reply ({})", skipped.model, skipped.error);
            let reasons = Message::list(Joint::Semicolon, self.skipped_models.iter().map(reason));
            let message = msg!("{reasons}; `{}` was used instead of `{}`", self.model, first.model);
            warnings.push(Event::Warning { code: "model-fallback", message, help: None });
        }
        if self.cut_off {
            let message = msg!("the reply of `{}` was truncated: it reached its token limit", self.model);
            let help = "increase `max_tokens` of the model in bcc-script.toml or in the front matter of the template";
            warnings.push(Event::Warning { code: "reply-cut-off", message, help: Some(help.into()) });
        }
        warnings
    }
}
