//! Models with an OpenAI-compatible chat completions API, with streaming and retries.

pub mod body;
pub mod chunk;
#[cfg(test)]
mod tests;

use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::model::error::ModelError;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::headers::secret;
use crate::providers::openai::body::encode;
use crate::providers::openai::chunk::read;

pub static CHAT_COMPLETIONS: Dialect = Dialect {
    name: "openai",
    auto_forms: &[Structured::JsonSchema, Structured::JsonObject, Structured::Off],
    other_forms: &[Structured::Tool],
    reserved_fields: &[
        ("model", "set the model's own field `model` instead"),
        ("messages", "they contain the prompt"),
        ("stream", "replies are always streamed"),
        ("stream_options", "token counts are always requested"),
        ("temperature", "set the model's own field `temperature` instead"),
        ("max_tokens", "set the model's own field `max_tokens` instead"),
        (
            "max_completion_tokens",
            "set the model's own field `max_tokens` instead; the newer name is used automatically",
        ),
        ("response_format", "set the model's own field `structured` instead"),
        ("tools", "set `structured = \"tool\"` for the model instead"),
        ("tool_choice", "set `structured = \"tool\"` for the model instead"),
    ],
    path: &["chat", "completions"],
    example: "http://localhost:11434/v1",
    headers,
    encode,
    read,
};

fn headers(config: &ServerConfig) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = config.key() {
        headers.insert(AUTHORIZATION, secret(&format!("Bearer {key}"), "the API key")?);
    }
    Ok(headers)
}
