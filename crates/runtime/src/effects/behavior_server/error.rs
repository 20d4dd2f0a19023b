//! Why a behavior server gave nothing that can be used. No message holds anything that the server sent beyond its status.

use std::time::Duration;

use crate::effects::behaviors::ServerError;
use bcc_llm::http::body::BodyError;
use bcc_llm::model::error::TimeoutPhase;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFault {
    Unreachable,
    /// An answer with this status, and how long it asks to wait.
    Status(u16, Option<Duration>),
    Broken(BodyError),
    Reported,
}

impl From<BodyError> for ServerFault {
    fn from(broken: BodyError) -> Self {
        Self::Broken(broken)
    }
}

impl ServerFault {
    /// Whether the same request may well succeed a little later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken(BodyError::CutOff) | Self::Status(429 | 500..=599, _))
    }

    pub fn told(&self, name: &str) -> ServerError {
        let (code, message, help) = match self {
            Self::Unreachable => (
                "server-unreachable",
                format!("the behavior server `{name}` cannot be reached"),
                format!("see that it runs, and that `url` of `[behavior_servers.{name}]` is right"),
            ),
            Self::Broken(BodyError::CutOff) => (
                "server-unreachable",
                format!("the connection to the behavior server `{name}` broke in the middle of its answer"),
                "see what the server wrote down; the session can be resumed".to_owned(),
            ),
            Self::Status(status, _) => (
                "server-refused",
                format!("the behavior server `{name}` answered with status {status}"),
                match status {
                    401 | 403 => format!("check `token_env` or `token_file` of `[behavior_servers.{name}]`"),
                    404 | 405 => format!("check `url` and `paths` of `[behavior_servers.{name}]`"),
                    300..=399 => "it leads elsewhere, which is not followed: write that address as `url`".to_owned(),
                    _ => "see what the server wrote down; the session can be resumed".to_owned(),
                },
            ),
            Self::Broken(BodyError::Late(waited, after)) => {
                let after = humantime::format_duration(*after);
                let (message, setting) = match waited {
                    TimeoutPhase::FirstToken => (
                        format!("the behavior server `{name}` did not begin to answer within {after}"),
                        "first_byte_timeout",
                    ),
                    TimeoutPhase::Idle => {
                        (format!("the behavior server `{name}` fell silent for {after} in its answer"), "idle_timeout")
                    }
                    TimeoutPhase::Total => {
                        (format!("the behavior server `{name}` did not end its answer within {after}"), "timeout")
                    }
                };
                (
                    "server-timeout",
                    message,
                    format!("if it needs longer, raise `{setting}` of `[behavior_servers.{name}]`"),
                )
            }
            Self::Broken(BodyError::Rubbish(what)) => (
                "server-rubbish",
                format!("what the behavior server `{name}` sent is no answer: {what}"),
                "`bcc-script schema protocol-response` prints what it may send".to_owned(),
            ),
            Self::Broken(BodyError::Flood(bytes)) => (
                "server-flood",
                format!("the behavior server `{name}` sent more than {bytes} bytes"),
                "send a shorter answer".to_owned(),
            ),
            Self::Reported => (
                "server-refused",
                format!("the behavior server `{name}` reports an error"),
                "see what the server wrote down; the session can be resumed".to_owned(),
            ),
        };
        ServerError { code, message, help: Some(help) }
    }
}
