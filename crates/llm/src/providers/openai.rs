//! A model behind an OpenAI-compatible chat-completions server, streamed, with retries.

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
    ladder: &[Structured::JsonSchema, Structured::JsonObject, Structured::Off],
    other_forms: &[Structured::Tool],
    owned: &[
        ("model", "write `model` beside it"),
        ("messages", "they are the prompt"),
        ("stream", "replies are always streamed"),
        ("stream_options", "token counts are always asked for"),
        ("temperature", "write `temperature` beside it"),
        ("max_tokens", "write `max_tokens` beside it"),
        ("max_completion_tokens", "write `max_tokens` beside it; the newer name is found by itself"),
        ("response_format", "write `structured` beside it"),
        ("tools", "write `structured = \"tool\"` beside it"),
        ("tool_choice", "write `structured = \"tool\"` beside it"),
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
