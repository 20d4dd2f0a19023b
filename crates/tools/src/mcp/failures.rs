//! Why a server cannot be reached, or a request has no result, as messages without addresses and keys.

use std::error::Error;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use rmcp::model::ErrorData;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::mcp::garbled::is_garbled;
use crate::mcp::secrets::McpSecrets;

type HttpError = StreamableHttpError<reqwest::Error>;

const NOT_A_RESULT: &str = "the server answered with something that is not a result";

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The server answered with an error.
    Answered(Message),
    /// The request did not reach the server.
    Unreachable(Message),
    /// The connection was lost after the request was sent, so its effect is not known.
    Lost(Message),
}

impl RequestFailure {
    pub(crate) fn of(error: &ServiceError, secrets: &McpSecrets) -> Self {
        match error {
            ServiceError::McpError(error) if is_garbled(error) => Self::Lost(NOT_A_RESULT.into()),
            ServiceError::McpError(error) => Self::Answered(answered(error, secrets)),
            ServiceError::TransportSend(error) if is_unreachable(error) => Self::Unreachable(transport(error, secrets)),
            ServiceError::TransportSend(error) if is_too_busy(error) => Self::Answered(transport(error, secrets)),
            ServiceError::TransportSend(error) => Self::Lost(transport(error, secrets)),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                Self::Lost("the connection was closed".into())
            }
            _ => Self::Answered(NOT_A_RESULT.into()),
        }
    }

    pub(crate) fn into_message(self) -> Message {
        match self {
            Self::Answered(why) | Self::Unreachable(why) | Self::Lost(why) => why,
        }
    }
}

fn answered(error: &ErrorData, secrets: &McpSecrets) -> Message {
    let text = secrets.error_text(&error.message);
    if text.is_empty() { msg!("error {}", error.code.0) } else { Message::text(text) }
}

/// Why no connection was established.
pub(crate) fn start_failure(error: &ClientInitializeError, secrets: &McpSecrets) -> Message {
    match error {
        ClientInitializeError::JsonRpcError(error) if is_garbled(error) => NOT_A_RESULT.into(),
        ClientInitializeError::JsonRpcError(error) => answered(error, secrets),
        ClientInitializeError::TransportError { error, .. } => transport(error, secrets),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_failure(fallback, secrets),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "the server knows none of the versions of the protocol that this program knows".into()
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
            "the connection was closed before the server introduced itself".into()
        }
        _ => "the server did not introduce itself as the protocol requires".into(),
    }
}

/// Whether another way to connect may work.
pub(crate) fn may_be_legacy(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            !is_unreachable(error)
                && !matches!(http(error), Some(HttpError::AuthRequired(_) | HttpError::InsufficientScope(_)))
        }
        ClientInitializeError::LegacyFallbackFailed { .. } => false,
        _ => true,
    }
}

fn http(error: &DynamicTransportError) -> Option<&HttpError> {
    error.error.downcast_ref()
}

/// Whether the server did not begin with the request: it has too much to do.
fn is_too_busy(error: &DynamicTransportError) -> bool {
    matches!(http(error), Some(HttpError::HttpStatus(error)) if [429, 503].contains(&error.status))
}

fn is_unreachable(error: &DynamicTransportError) -> bool {
    matches!(http(error), Some(HttpError::Client(error)) if error.is_connect())
}

fn transport(error: &DynamicTransportError, secrets: &McpSecrets) -> Message {
    match http(error) {
        // The text of the error has the address, which may contain a secret.
        Some(HttpError::Client(error)) => {
            let mut cause: &dyn Error = error;
            while let Some(inner) = cause.source() {
                cause = inner;
            }
            match cause.downcast_ref::<reqwest::Error>() {
                Some(_) => "the server cannot be reached".into(),
                None => msg!("the server cannot be reached ({})", secrets.error_text(&cause.to_string())),
            }
        }
        Some(HttpError::AuthRequired(_) | HttpError::InsufficientScope(_)) => {
            "the server does not accept the key; check `api_key_env` or `api_key_file`".into()
        }
        Some(HttpError::ResponseBodyTooLarge { max_size }) => msg!("the server sent more than {max_size} bytes"),
        Some(HttpError::Deserialize(_)) => NOT_A_RESULT.into(),
        // What cannot be parsed; the text goes on with the start of what was sent.
        Some(HttpError::UnexpectedServerResponse(text)) if text.starts_with("could") => NOT_A_RESULT.into(),
        Some(error) => Message::text(secrets.cut_error_text(&error.to_string())),
        None => "the connection was closed".into(),
    }
}
