//! Models with Anthropic's messages API, or a compatible server, with streaming and retries.

pub mod body;
pub mod event;
#[cfg(test)]
mod tests;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::model::error::ModelError;
use crate::providers::anthropic::body::encode;
use crate::providers::anthropic::event::read;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::headers::secret;

pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";

const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

pub static MESSAGES: Dialect = Dialect {
    name: "anthropic",
    auto_forms: &[Structured::Tool, Structured::Off],
    other_forms: &[],
    reserved_fields: &[
        ("model", "set the model's own field `model` instead"),
        ("messages", "they contain the prompt"),
        ("system", "it is part of the prompt"),
        ("stream", "replies are always streamed"),
        ("temperature", "set the model's own field `temperature` instead"),
        ("max_tokens", "set the model's own field `max_tokens` instead"),
        ("tools", "set `structured = \"tool\"` for the model instead"),
        ("tool_choice", "set `structured = \"tool\"` for the model instead"),
    ],
    path: &["v1", "messages"],
    example: ANTHROPIC_BASE_URL,
    headers,
    encode,
    read,
};

fn headers(config: &ServerConfig) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
    if let Some(key) = config.key() {
        headers.insert(HeaderName::from_static("x-api-key"), secret(key, "the API key")?);
    }
    Ok(headers)
}
