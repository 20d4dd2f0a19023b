//! An interview: a session as a data set has it, after what is sensitive was left out or masked.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Interview {
    pub(crate) id: String,
    pub(crate) script: String,
    pub(crate) script_name: Option<String>,
    pub(crate) script_sha256: String,
    /// The pseudonym of its user.
    pub(crate) participant: String,
    /// The id of the user, if it is included.
    pub(crate) user: Option<String>,
    pub(crate) status: String,
    pub(crate) started_at: String,
    /// None as long as it can be continued.
    pub(crate) ended_at: Option<String>,
    pub(crate) updated_at: String,
    pub(crate) answers: u64,
    /// The variables of the session, and of phases and topics that run once.
    pub(crate) values: Vec<CollectedValue>,
    pub(crate) visits: Vec<TopicVisit>,
    pub(crate) messages: Vec<InterviewMessage>,
    pub(crate) actions: Vec<ActionVisit>,
}

/// A value that is not null.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CollectedValue {
    /// Its number in the catalog.
    pub(crate) variable: usize,
    /// The value as JSON, with the digits of its numbers.
    pub(crate) json: String,
}

/// One visit of a topic that runs for each element of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TopicVisit {
    /// The number of the topic among those that are repeated.
    pub(crate) topic: usize,
    pub(crate) path: String,
    pub(crate) values: Vec<CollectedValue>,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageRole {
    /// The first message of an action that waits for an answer.
    Question,
    /// Another message of the same action that waits for an answer.
    FollowUp,
    /// A message that does not wait for an answer.
    Statement,
    Answer,
}

impl MessageRole {
    pub(crate) const ALL: [Self; 4] = [Self::Question, Self::FollowUp, Self::Statement, Self::Answer];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::FollowUp => "follow_up",
            Self::Statement => "statement",
            Self::Answer => "answer",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InterviewMessage {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) at: String,
    pub(crate) role: MessageRole,
    /// The name of the speaker in the script.
    pub(crate) speaker: String,
    pub(crate) phase_id: String,
    pub(crate) topic_id: String,
    pub(crate) action_id: String,
    pub(crate) path: String,
    pub(crate) round: u64,
    /// The names of the phase, the topic and the skills.
    pub(crate) place: String,
    pub(crate) text: String,
}

/// One visit of an action.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ActionVisit {
    pub(crate) path: String,
    pub(crate) phase_id: String,
    pub(crate) topic_id: String,
    pub(crate) action_id: String,
    pub(crate) action_type: String,
    pub(crate) started_at: String,
    /// The number of messages that waited for an answer.
    pub(crate) questions: u64,
    pub(crate) answers: u64,
    /// Why it ended; none if it has not.
    pub(crate) exit_reason: Option<String>,
    /// The branch that it took, of an action with branches.
    pub(crate) branch: Option<String>,
    /// The route that an `on_exit` table gave after it.
    pub(crate) route: Option<String>,
}

impl ActionVisit {
    pub(crate) fn follow_ups(&self) -> u64 {
        self.questions.saturating_sub(1)
    }
}
