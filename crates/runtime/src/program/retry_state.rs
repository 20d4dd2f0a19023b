//! The state of an exchange with a model: rejected replies, the reply that counts, and whether the model is called again.

use crate::program::exchange::{Ask, Exchange};
use crate::program::live_text::risk;
use crate::program::reask::{MAX_REPLY_CHARS, reply_problems};
use crate::program::transcript::cut_in_the_middle;
use bcc_lang::template::language::PromptLanguage;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::reply::read::{Reply, UnreadableReply};

/// The fields of a reply that assess an answer, which an opening turn does not use.
const ANSWER_FIELDS: [&str; 5] = ["EXIT", "BRIEF", "metrics", "progress_suggestion", "metadata"];

/// The state of an exchange.
pub(crate) struct RetryState<'a> {
    pub(crate) ask: &'a Ask<'a>,
    pub(crate) policy: ReplyPolicy,
    /// The language of the prompt.
    pub(crate) language: PromptLanguage,
    pub(crate) reasks: u32,
    /// Whether one of these retries was because a reply marked itself as unsafe.
    pub(crate) for_safety: bool,
    pub(crate) rejected: Vec<RejectedReply>,
    /// The last readable reply, although it was not used as it is.
    pub(crate) earlier: Option<Exchange>,
}

/// A raw reply and its parse result.
pub(crate) type ReplyOrError<'a> = (&'a str, &'a Result<Reply, UnreadableReply>);

/// A rejected reply that appears in the prompt of the retry.
pub(crate) struct RejectedReply {
    /// Its index among the messages.
    pub(crate) place: usize,
    /// Its text for events.
    pub(crate) shown: String,
    /// Its text for recordings.
    pub(crate) recorded: String,
}

/// The next step after a reply.
pub(crate) enum Next {
    Keep,
    Earlier,
    Again(Again),
}

pub(crate) enum Again {
    Safety(String),
    Problems(Vec<String>),
}

impl RetryState<'_> {
    pub(crate) fn next(&mut self, reading: &Result<Reply, UnreadableReply>, cut_off: bool) -> Next {
        let max_retries = self.policy.reask;
        if let Some(reason) = reading.as_ref().ok().and_then(risk) {
            // One safety retry is made regardless of the configuration; it counts towards `reask`.
            if self.for_safety || self.reasks >= max_retries.max(1) {
                return Next::Keep;
            }
            self.for_safety = true;
            return Next::Again(Again::Safety(reason));
        }
        if self.reasks < max_retries {
            let problems = reply_problems(reading, cut_off, self.ask.shape, &self.unused());
            if !problems.is_empty() {
                return Next::Again(Again::Problems(problems));
            }
        }
        if reading.is_err() && self.earlier.is_some() { Next::Earlier } else { Next::Keep }
    }

    /// The fields of the reply that an opening turn does not use.
    fn unused(&self) -> Vec<&str> {
        if !self.ask.opening {
            return vec![];
        }
        let outputs = self.ask.outputs.iter().map(|output| output.get.as_str());
        ANSWER_FIELDS.into_iter().chain(outputs).collect()
    }

    /// `messages` for storage: without the values of sensitive outputs in rejected replies.
    pub(crate) fn shown(
        &self,
        mut messages: Vec<ChatMessage>,
        text_of: impl Fn(&RejectedReply) -> &str,
    ) -> Vec<ChatMessage> {
        for rejected in &self.rejected {
            if let Some(message) = messages.get_mut(rejected.place) {
                message.content = cut_in_the_middle(text_of(rejected), MAX_REPLY_CHARS);
            }
        }
        messages
    }
}
