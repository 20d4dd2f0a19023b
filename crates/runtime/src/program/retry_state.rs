//! The state of an exchange with a model: rejected replies, the reply that counts, and whether the model is called again.

use crate::program::exchange::{Ask, Exchange};
use crate::program::live_text::{reports_crisis, risk};
use crate::program::reask::{MAX_REPLY_CHARS, reply_problems};
use crate::program::transcript::cut_in_the_middle;
use bcc_lang::template::language::PromptLanguage;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::reply::exit::is_yes;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use serde_json::Value;

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
    for_safety: bool,
    /// Whether the model refused to answer the last time.
    pub(crate) refused: bool,
    /// Whether one of them was because a reply ended the action without its required outputs.
    for_missing: bool,
    /// Whether a reply reported that the person is in danger.
    pub(crate) in_crisis: bool,
    pub(crate) rejected: Vec<RejectedReply>,
    /// The last readable reply, although it was not used as it is. It counts if the model gives no other one, also if its text is
    /// held back: what it says about the person's safety must not be lost.
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
    /// The model refused twice in a row.
    Refused,
    Again(Again),
}

pub(crate) enum Again {
    Safety(String),
    /// The model refused, or a content filter removed its answer.
    Refusal,
    Problems(Vec<String>),
    Missing(Vec<String>),
}

impl<'a> RetryState<'a> {
    pub(crate) fn new(ask: &'a Ask<'a>, policy: ReplyPolicy, language: PromptLanguage) -> Self {
        Self {
            ask,
            policy,
            language,
            reasks: 0,
            for_safety: false,
            refused: false,
            for_missing: false,
            in_crisis: false,
            rejected: vec![],
            earlier: None,
        }
    }

    pub(crate) fn next(&mut self, reading: &Result<Reply, UnreadableReply>, cut_off: bool, refused: bool) -> Next {
        let max_retries = self.policy.reask;
        let refused_before = std::mem::replace(&mut self.refused, refused);
        if refused {
            return match (refused_before, self.earlier.is_some()) {
                (_, true) => Next::Earlier,
                (true, false) => Next::Refused,
                // One retry is made regardless of the configuration.
                (false, false) => Next::Again(Again::Refusal),
            };
        }
        self.in_crisis |= reading.as_ref().is_ok_and(reports_crisis);
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
        if let Ok(reply) = reading
            && !self.for_missing
            && reply.object.get("EXIT").is_some_and(is_yes)
        {
            let is_null = |name: &&String| reply.object.get(name.as_str()).is_none_or(Value::is_null);
            let missing: Vec<String> = self.ask.missing.iter().filter(is_null).cloned().collect();
            if !missing.is_empty() {
                // Like the retry for safety, it is made regardless of the configuration.
                self.for_missing = true;
                return Next::Again(Again::Missing(missing));
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
