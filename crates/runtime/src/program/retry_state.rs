//! How far an exchange with a model has come: what was refused, what counts in the end, and whether the model is asked again.

use crate::program::exchange::{Ask, Exchange};
use crate::program::live_text::risk;
use crate::program::reask::{MOST_REPLY, faults};
use crate::program::transcript::cut_in_the_middle;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::reply::read::{Reply, UnreadableReply};

/// The fields of a reply that judge an answer, and which an opening turn has no use for.
const OF_ANSWERS: [&str; 5] = ["EXIT", "BRIEF", "metrics", "progress_suggestion", "metadata"];

/// How far an exchange has come.
pub(crate) struct RetryState<'a> {
    pub(crate) ask: &'a Ask<'a>,
    pub(crate) manners: ReplyPolicy,
    pub(crate) reasks: u32,
    /// Whether one of these was because a reply called itself unsafe.
    pub(crate) for_safety: bool,
    pub(crate) refused: Vec<RejectedReply>,
    /// The last reply that could be read, though not used as it is.
    pub(crate) earlier: Option<Exchange>,
}

/// A raw reply, and how it was read.
pub(crate) type ReplyOrError<'a> = (&'a str, &'a Result<Reply, UnreadableReply>);

/// A reply that was refused and stands in the prompt that asks again.
pub(crate) struct RejectedReply {
    /// Its place among the messages.
    pub(crate) place: usize,
    /// What may be shown of it.
    pub(crate) shown: String,
    /// What may be recorded of it.
    pub(crate) recorded: String,
}

/// What follows a reply.
pub(crate) enum Next {
    Keep,
    Earlier,
    Again(Again),
}

pub(crate) enum Again {
    Safety(String),
    Faults(Vec<String>),
}

impl RetryState<'_> {
    pub(crate) fn next(&mut self, reading: &Result<Reply, UnreadableReply>, cut_off: bool) -> Next {
        let most = self.manners.reask;
        if let Some(reason) = reading.as_ref().ok().and_then(risk) {
            // This much is asked however the action is configured; with `reask`, it is one of those times.
            if self.for_safety || self.reasks >= most.max(1) {
                return Next::Keep;
            }
            self.for_safety = true;
            return Next::Again(Again::Safety(reason));
        }
        if self.reasks < most {
            let faults = faults(reading, cut_off, self.ask.shape, &self.unused());
            if !faults.is_empty() {
                return Next::Again(Again::Faults(faults));
            }
        }
        if reading.is_err() && self.earlier.is_some() { Next::Earlier } else { Next::Keep }
    }

    /// What an opening turn does not look at in its reply.
    fn unused(&self) -> Vec<&str> {
        if !self.ask.opening {
            return vec![];
        }
        let outputs = self.ask.outputs.iter().map(|output| output.get.as_str());
        OF_ANSWERS.into_iter().chain(outputs).collect()
    }

    /// `messages` as they may be kept: without what sensitive outputs held in refused replies.
    pub(crate) fn shown(
        &self,
        mut messages: Vec<ChatMessage>,
        how: impl Fn(&RejectedReply) -> &str,
    ) -> Vec<ChatMessage> {
        for refused in &self.refused {
            if let Some(message) = messages.get_mut(refused.place) {
                message.content = cut_in_the_middle(how(refused), MOST_REPLY);
            }
        }
        messages
    }
}
