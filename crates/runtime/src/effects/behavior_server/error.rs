//! Why a behavior server gave nothing that can be used. No message holds anything that the server sent beyond its status.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
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
                msg!("the behavior server `{name}` cannot be reached"),
                msg!("see that it runs, and that `url` of `[behavior_servers.{name}]` is right"),
            ),
            Self::Broken(BodyError::CutOff) => (
                "server-unreachable",
                msg!("the connection to the behavior server `{name}` broke in the middle of its answer"),
                Message::word("see what the server wrote down; the session can be resumed"),
            ),
            Self::Status(status, _) => (
                "server-refused",
                msg!("the behavior server `{name}` answered with status {status}"),
                match status {
                    401 | 403 => msg!("check `token_env` or `token_file` of `[behavior_servers.{name}]`"),
                    404 | 405 => msg!("check `url` and `paths` of `[behavior_servers.{name}]`"),
                    300..=399 => {
                        Message::word("it leads elsewhere, which is not followed: write that address as `url`")
                    }
                    _ => Message::word("see what the server wrote down; the session can be resumed"),
                },
            ),
            Self::Broken(BodyError::Late(waited, after)) => {
                let after = humantime::format_duration(*after);
                let (message, setting) = match waited {
                    TimeoutPhase::FirstToken => (
                        msg!("the behavior server `{name}` did not begin to answer within {after}"),
                        "first_byte_timeout",
                    ),
                    TimeoutPhase::Idle => {
                        (msg!("the behavior server `{name}` fell silent for {after} in its answer"), "idle_timeout")
                    }
                    TimeoutPhase::Total => {
                        (msg!("the behavior server `{name}` did not end its answer within {after}"), "timeout")
                    }
                };
                (
                    "server-timeout",
                    message,
                    msg!("if it needs longer, raise `{setting}` of `[behavior_servers.{name}]`"),
                )
            }
            Self::Broken(BodyError::Rubbish(what)) => (
                "server-rubbish",
                msg!("what the behavior server `{name}` sent is no answer: {what}"),
                Message::word("`bcc-script schema protocol-response` prints what it may send"),
            ),
            Self::Broken(BodyError::Flood(bytes)) => (
                "server-flood",
                msg!("the behavior server `{name}` sent more than {bytes} bytes"),
                Message::word("send a shorter answer"),
            ),
            Self::Reported => (
                "server-refused",
                msg!("the behavior server `{name}` reports an error"),
                Message::word("see what the server wrote down; the session can be resumed"),
            ),
        };
        ServerError { code, message, help: Some(help) }
    }
}
