//! What is sent: the body of a chat-completions request, built field by field from the messages and the settings.

use serde::Serialize;

use crate::model::message::Message;
use crate::model::providers::http::config::ServerConfig;
use crate::model::request::ModelRequest;

/// The body as JSON. Nothing of the request's `task` is in it. `ask_usage` asks for token counts in a stream, which
/// some servers refuse.
///
/// # Errors
/// The serializer's own, which no message can cause.
pub(crate) fn encode(config: &ServerConfig, request: &ModelRequest, ask_usage: bool) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Body {
        model: &config.model,
        messages: &request.messages,
        stream: true,
        stream_options: ask_usage.then_some(StreamOptions { include_usage: true }),
        temperature: request.temperature.or(config.temperature),
        max_tokens: request.max_tokens.or(config.max_tokens),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}
