//! Errors of model calls, and their messages.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use humantime::format_duration;

use crate::model::reply::SkippedModel;

/// Why there is no reply. `host` is the host and port only, without path or key. `attempts` counts the requests sent.
///
/// An error contains no text of prompts or replies, with two exceptions: [`ModelError::Differs`] shows how a prompt differs
/// from its recording, and `message` of [`ModelError::Http`] is the message of the server, truncated to
/// `MAX_SERVER_MESSAGE_CHARS` characters and without the key. It is left out if it repeats text of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    Unreachable {
        host: String,
        /// The innermost cause, as reported by the operating system or the TLS library.
        reason: String,
        attempts: u32,
    },
    Http {
        host: String,
        /// The HTTP status, or the equivalent status of an error inside the stream.
        status: u16,
        /// The short message of the server; may be empty.
        message: String,
        retry_after: Option<Duration>,
        attempts: u32,
    },
    Timeout {
        host: String,
        phase: TimeoutPhase,
        after: Duration,
        attempts: u32,
    },
    CutOff {
        host: String,
        attempts: u32,
    },
    Garbled {
        host: String,
        attempts: u32,
    },
    TooLarge {
        host: String,
        /// The limit in bytes.
        limit: usize,
        attempts: u32,
    },
    Protocol {
        host: String,
        message: Message,
        attempts: u32,
    },
    /// A provider that is not a model has no reply for this call.
    NoReply {
        key: Message,
        help: Message,
    },
    /// Neither a model nor any of its fallbacks replied.
    NoneAnswered {
        skipped_models: Vec<SkippedModel>,
    },
    /// The model refused to answer, or a content filter removed its answer, and did so again when it was asked once more.
    Refused {
        /// The provider and its model.
        model: String,
    },
    Differs {
        key: Message,
        file: String,
        diff: Message,
    },
    RecordedFailure {
        key: Message,
        file: String,
        error: String,
    },
    Config {
        message: Message,
    },
}

pub(crate) const MAX_SERVER_MESSAGE_CHARS: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPhase {
    Total,
    /// From the request to the first part of the reply.
    FirstToken,
    /// Between two parts of the reply.
    Idle,
}

impl TimeoutPhase {
    /// The setting of `bcc-script.toml` that changes the limit.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Total => "timeout",
            Self::FirstToken => "first_token_timeout",
            Self::Idle => "idle_timeout",
        }
    }
}

impl ModelError {
    /// The number of requests sent; 0 for errors that occur before a request.
    pub fn attempts(&self) -> u32 {
        match self {
            Self::NoneAnswered { skipped_models } => {
                skipped_models.iter().fold(0, |sum, skipped| sum.saturating_add(skipped.attempts))
            }
            _ => self.clone().attempts_mut().map_or(0, |attempts| *attempts),
        }
    }

    #[must_use]
    pub(crate) fn with_attempts(mut self, count: u32) -> Self {
        if let Some(attempts) = self.attempts_mut() {
            *attempts = count;
        }
        self
    }

    /// The number of requests sent, for errors that occur after a request.
    fn attempts_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Unreachable { attempts, .. }
            | Self::Http { attempts, .. }
            | Self::Timeout { attempts, .. }
            | Self::CutOff { attempts, .. }
            | Self::Garbled { attempts, .. }
            | Self::TooLarge { attempts, .. }
            | Self::Protocol { attempts, .. } => Some(attempts),
            _ => None,
        }
    }

    /// The kind, with the status if there is one. Recordings store it; it contains no addresses or file names.
    pub fn summary(&self) -> String {
        match self {
            Self::Http { status, .. } => format!("{} {status}", self.kind()),
            _ => self.kind().to_owned(),
        }
    }

    /// Whether a model failed, now or when the call was recorded. Otherwise the cause is in written replies, a replay or a
    /// setting, and must not be hidden.
    pub const fn is_model_failure(&self) -> bool {
        !matches!(self, Self::NoReply { .. } | Self::Differs { .. } | Self::Config { .. })
    }

    /// What a log above debug level says about it: without text of servers, which may repeat what a person said.
    pub fn without_server_text(&self) -> Message {
        match self {
            Self::Http { host, status, retry_after, attempts, .. } => {
                let (host, retry_after, attempts) = (host.clone(), *retry_after, *attempts);
                Self::Http { host, status: *status, message: String::new(), retry_after, attempts }.to_message()
            }
            Self::Protocol { host, .. } => Message::text(format!("{} {host}", self.kind())),
            Self::NoneAnswered { skipped_models } => {
                Message::names(skipped_models.iter().map(|skipped| skipped.model.as_str()))
            }
            Self::Differs { .. } => Message::text(self.kind()),
            other => other.to_message(),
        }
    }

    /// The kind of the error for logs; contains no text of servers or persons.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Http { .. } => "http",
            Self::Timeout { .. } => "timeout",
            Self::CutOff { .. } => "cut_off",
            Self::Garbled { .. } => "garbled",
            Self::TooLarge { .. } => "too_large",
            Self::Protocol { .. } => "protocol",
            Self::NoReply { .. } => "no_reply",
            Self::NoneAnswered { .. } => "none_answered",
            Self::Refused { .. } => "refused",
            Self::Differs { .. } => "differs",
            Self::RecordedFailure { .. } => "failed_then",
            Self::Config { .. } => "config",
        }
    }
}

/// Whether the message reports that there is no written or recorded reply for a call.
pub fn is_no_reply(message: &Message) -> bool {
    let literals =
        ["no reply for {key}: {help}", "no reply for {key}: when {file} was recorded, there was none either: {error}"];
    literals.iter().any(|literal| message.is(literal))
}

impl ToMessage for ModelError {
    fn to_message(&self) -> Message {
        match self {
            Self::Unreachable { host, reason, attempts } => {
                let reason = append_attempts(Message::text(format!("({reason})")), *attempts);
                msg!(
                    "cannot reach the model at {host} {reason}: check that the server is running and that `base_url` is correct"
                )
            }
            Self::Http { host, status, message, retry_after, attempts } => {
                let answer = match message.as_str() {
                    "" => Message::text(status.to_string()),
                    message => Message::text(format!("{status} ({message})")),
                };
                let (answer, advice) = (append_attempts(answer, *attempts), advice(*status, *retry_after));
                msg!("the model at {host} returned {answer}: {advice}")
            }
            Self::Timeout { host, phase, after: time, attempts } => {
                let time = append_attempts(Message::text(format_duration(*time).to_string()), *attempts);
                let setting = phase.setting();
                match phase {
                    TimeoutPhase::Total => {
                        msg!(
                            "the model at {host} did not finish its reply within {time}: try again, or raise `{setting}`"
                        )
                    }
                    TimeoutPhase::FirstToken => {
                        msg!(
                            "the model at {host} did not start its reply within {time}: try again, or raise `{setting}`"
                        )
                    }
                    TimeoutPhase::Idle => {
                        msg!(
                            "the model at {host} sent nothing for {time} in the middle of its reply: try again, or raise `{setting}`"
                        )
                    }
                }
            }
            Self::CutOff { host, attempts } => {
                let reply = append_attempts(Message::word("in the middle of its reply"), *attempts);
                msg!("the model at {host} closed the connection {reply}: try again")
            }
            Self::Garbled { host, attempts } => {
                let reply = append_attempts(Message::word("in the middle of its reply"), *attempts);
                msg!("the model at {host} sent invalid data {reply}: try again")
            }
            Self::TooLarge { host, limit, .. } => {
                msg!("the reply of the model at {host} is larger than {limit} bytes and was discarded")
            }
            Self::Protocol { host, message, .. } => {
                msg!("the server at {host} does not respond like a model server: {message}")
            }
            Self::NoReply { key, help } => msg!("no reply for {key}: {help}"),
            Self::NoneAnswered { skipped_models } => {
                let each = skipped_models.iter().map(|skipped| {
                    Message::list(Joint::Colon, [Message::text(skipped.model.as_str()), skipped.error.clone()])
                });
                msg!("none of the {} models answered: {}", skipped_models.len(), Message::list(Joint::Semicolon, each))
            }
            Self::Refused { model } => {
                msg!(
                    "the model {model} refused to answer, or a content filter removed its answer, twice in a row: resume the session to try again, change what the action asks, or choose another model"
                )
            }
            Self::Differs { key, file, diff } => {
                msg!("the prompt of {key} differs from the one recorded in {file}:\n{diff}", diff = diff.clone())
            }
            Self::RecordedFailure { key, file, error } => {
                msg!("no reply for {key}: when {file} was recorded, there was none either: {error}")
            }
            Self::Config { message } => message.clone(),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_message().fmt(formatter)
    }
}

impl std::error::Error for ModelError {}

/// Appends the number of attempts if there was more than one.
fn append_attempts(message: Message, attempts: u32) -> Message {
    if attempts > 1 { msg!("{message} after {attempts} attempts") } else { message }
}

fn advice(status: u16, retry_after: Option<Duration>) -> Message {
    let advice = Message::word(match status {
        300..=399 => "the server redirects; set `base_url` to the address that it redirects to",
        401 | 403 => "check the API key (`api_key_env`) and its permissions",
        404 => "check `base_url` and the name of the `model`",
        407 => "the proxy requires a user name and a password; add them to `proxy`",
        402 => "check the account's balance",
        413 => "the prompt is too large for the server",
        400 => "check the name of the `model` and its settings, and the API key (`api_key_env`)",
        429 => "too many requests, or a quota is used up; try again later",
        405..=499 => "check the name of the `model` and its settings",
        500..=599 => "the server has a problem; try again later",
        _ => "check `base_url`",
    });
    match retry_after {
        Some(wait) => msg!("{advice}; the server asks to wait {}", format_duration(wait)),
        None => advice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "localhost:11434";

    fn every_error() -> Vec<ModelError> {
        let (host, attempts) = (HOST.to_owned(), 4);
        let http = |status, message: &str, retry_after| ModelError::Http {
            host: HOST.to_owned(),
            status,
            message: message.to_owned(),
            retry_after,
            attempts: 1,
        };
        let timeout = |phase, seconds| ModelError::Timeout {
            host: HOST.to_owned(),
            phase,
            after: Duration::from_secs(seconds),
            attempts: 1,
        };
        vec![
            ModelError::Unreachable { host: host.clone(), reason: "Connection refused".into(), attempts },
            http(401, "Incorrect API key", None),
            http(404, "", None),
            http(400, "invalid token", None),
            http(429, "slow down", Some(Duration::from_secs(7200))),
            http(503, "", None),
            timeout(TimeoutPhase::Total, 120),
            timeout(TimeoutPhase::FirstToken, 60),
            timeout(TimeoutPhase::Idle, 30),
            ModelError::CutOff { host: host.clone(), attempts },
            ModelError::Garbled { host: host.clone(), attempts },
            ModelError::TooLarge { host: host.clone(), limit: 4_194_304, attempts },
            ModelError::Protocol { host, message: "its response is not JSON".into(), attempts },
            ModelError::NoneAnswered {
                skipped_models: vec![
                    SkippedModel { model: "openai:a".into(), error: "returned 503".into(), attempts: 4 },
                    SkippedModel { model: "openai:b".into(), error: "cannot be reached".into(), attempts: 3 },
                ],
            },
            ModelError::Refused { model: "openai:a".into() },
            ModelError::NoReply { key: "ask_name, call 3".into(), help: "there are 2 replies".into() },
            ModelError::Config { message: "`base_url` must start with http:// or https://".into() },
        ]
    }

    #[test]
    fn every_error_has_a_message_with_advice() {
        let lines: Vec<String> = every_error().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        cannot reach the model at localhost:11434 (Connection refused) after 4 attempts: check that the server is running and that `base_url` is correct
        the model at localhost:11434 returned 401 (Incorrect API key): check the API key (`api_key_env`) and its permissions
        the model at localhost:11434 returned 404: check `base_url` and the name of the `model`
        the model at localhost:11434 returned 400 (invalid token): check the name of the `model` and its settings, and the API key (`api_key_env`)
        the model at localhost:11434 returned 429 (slow down): too many requests, or a quota is used up; try again later; the server asks to wait 2h
        the model at localhost:11434 returned 503: the server has a problem; try again later
        the model at localhost:11434 did not finish its reply within 2m: try again, or raise `timeout`
        the model at localhost:11434 did not start its reply within 1m: try again, or raise `first_token_timeout`
        the model at localhost:11434 sent nothing for 30s in the middle of its reply: try again, or raise `idle_timeout`
        the model at localhost:11434 closed the connection in the middle of its reply after 4 attempts: try again
        the model at localhost:11434 sent invalid data in the middle of its reply after 4 attempts: try again
        the reply of the model at localhost:11434 is larger than 4194304 bytes and was discarded
        the server at localhost:11434 does not respond like a model server: its response is not JSON
        none of the 2 models answered: openai:a: returned 503; openai:b: cannot be reached
        the model openai:a refused to answer, or a content filter removed its answer, twice in a row: resume the session to try again, change what the action asks, or choose another model
        no reply for ask_name, call 3: there are 2 replies
        `base_url` must start with http:// or https://
        ");
    }

    #[test]
    fn a_log_contains_no_text_of_servers() {
        let text = |error: &ModelError| error.without_server_text().to_string();
        for error in every_error() {
            assert!(
                !["API key)", "slow down", "not JSON", "returned 503;"].iter().any(|part| text(&error).contains(part))
            );
        }
        assert_eq!(
            text(&every_error()[1]),
            "the model at localhost:11434 returned 401: check the API key (`api_key_env`) and its permissions"
        );
        assert!(text(&every_error()[0]).contains("Connection refused"));
    }

    #[test]
    fn attempts_are_counted_only_where_requests_are_sent() {
        for error in every_error() {
            let sends =
                !matches!(error, ModelError::NoReply { .. } | ModelError::Config { .. } | ModelError::Refused { .. });
            let kind = error.kind();
            assert_eq!(error.with_attempts(7).attempts(), if sends { 7 } else { 0 }, "{kind}");
        }
    }
}
