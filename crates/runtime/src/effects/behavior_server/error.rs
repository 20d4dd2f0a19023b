//! Errors of behavior servers. No message contains anything that the server sent except its status.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::time::Duration;

use crate::effects::behaviors::ServerError;
use bcc_llm::http::body::BodyError;
use bcc_llm::model::error::TimeoutPhase;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BehaviorServerError {
    Unreachable,
    /// A response with this status, and the pause that the server requests.
    Status(u16, Option<Duration>),
    Broken(BodyError),
    Reported,
}

impl From<BodyError> for BehaviorServerError {
    fn from(error: BodyError) -> Self {
        Self::Broken(error)
    }
}

impl BehaviorServerError {
    /// Whether the same request may succeed a little later.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken(BodyError::CutOff) | Self::Status(429 | 500..=599, _))
    }

    pub(crate) fn to_server_error(&self, name: &str) -> ServerError {
        let (code, message, help) = match self {
            Self::Unreachable => (
                "server-unreachable",
                msg!("the behavior server `{name}` cannot be reached"),
                msg!("make sure that it is running and that `url` of `[behavior_servers.{name}]` is correct"),
            ),
            Self::Broken(BodyError::CutOff) => (
                "server-unreachable",
                msg!("the connection to the behavior server `{name}` was lost in the middle of its response"),
                Message::word("check the log of the server; the session can be resumed"),
            ),
            Self::Status(status, _) => (
                "server-refused",
                msg!("the behavior server `{name}` responded with status {status}"),
                match status {
                    401 | 403 => msg!("check `token_env` or `token_file` of `[behavior_servers.{name}]`"),
                    404 | 405 => msg!("check `url` and `paths` of `[behavior_servers.{name}]`"),
                    300..=399 => Message::word(
                        "it redirects elsewhere, and redirects are not followed: use that address as `url`",
                    ),
                    _ => Message::word("check the log of the server; the session can be resumed"),
                },
            ),
            Self::Broken(BodyError::Timeout(phase, duration)) => {
                let duration = humantime::format_duration(*duration);
                let (message, setting) = match phase {
                    TimeoutPhase::FirstToken => (
                        msg!("the behavior server `{name}` did not start its response within {duration}"),
                        "first_byte_timeout",
                    ),
                    TimeoutPhase::Idle => (
                        msg!("the behavior server `{name}` sent nothing for {duration} in the middle of its response"),
                        "idle_timeout",
                    ),
                    TimeoutPhase::Total => {
                        (msg!("the behavior server `{name}` did not finish its response within {duration}"), "timeout")
                    }
                };
                (
                    "server-timeout",
                    message,
                    msg!("if it needs more time, increase `{setting}` of `[behavior_servers.{name}]`"),
                )
            }
            Self::Broken(BodyError::Invalid(problem)) => (
                "server-rubbish",
                msg!("the behavior server `{name}` sent an invalid response: {problem}"),
                Message::word("`bcc-script schema protocol-response` prints what it can send"),
            ),
            Self::Broken(BodyError::TooLarge(bytes)) => (
                "server-flood",
                msg!("the behavior server `{name}` sent more than {bytes} bytes"),
                Message::word("send a shorter response"),
            ),
            Self::Reported => (
                "server-refused",
                msg!("the behavior server `{name}` reports an error"),
                Message::word("check the log of the server; the session can be resumed"),
            ),
        };
        ServerError { code, message, help: Some(help) }
    }
}
