//! A model behind an OpenAI-compatible chat-completions server, streamed, with retries.

pub mod body;
pub mod chunk;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::model::error::ModelError;
use crate::model::provider::{Live, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::providers::http::address::endpoint;
use crate::providers::http::asking::{Asking, Form};
use crate::providers::http::caller::Caller;
use crate::providers::http::chunk::Chunk;
use crate::providers::http::config::ServerConfig;
use crate::providers::http::dialect::Dialect;
use crate::providers::http::headers::secret;
use crate::providers::openai::body::encode;
use crate::providers::openai::chunk::read;

/// The dialect of OpenAI's chat completions, which most servers speak.
#[derive(Debug)]
pub struct ChatCompletions;

impl Dialect for ChatCompletions {
    const NAME: &'static str = "openai";

    const LADDER: &'static [Form] = &[Form::JsonSchema, Form::JsonObject, Form::Off];

    const OTHER_FORMS: &'static [Form] = &[Form::Tool];

    const OWNED: &'static [(&'static str, &'static str)] = &[
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
    ];

    fn endpoint(config: &ServerConfig) -> Result<Url, ModelError> {
        endpoint(&config.base_url, &["chat", "completions"], "http://localhost:11434/v1")
    }

    fn headers(config: &ServerConfig) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = config.key() {
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {key}"), "the API key")?);
        }
        Ok(headers)
    }

    fn encode(config: &ServerConfig, request: &ModelRequest, asking: Asking) -> serde_json::Result<Vec<u8>> {
        encode(config, request, asking)
    }

    fn read(data: &[u8]) -> Option<Chunk<'_>> {
        read(data)
    }
}

/// One model of one server. Cheap to ask many times: connections are kept. Its debug form shows no secret.
#[derive(Debug)]
pub struct OpenAi(Caller<ChatCompletions>);

impl OpenAi {
    /// A provider with these settings. Nothing is sent yet.
    ///
    /// Redirections are not followed, so that prompts and the key go nowhere but to `base_url`.
    ///
    /// # Errors
    /// [`ModelError::Config`] for settings that cannot work.
    pub fn new(config: ServerConfig) -> Result<Self, ModelError> {
        Caller::new(config).map(Self)
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn Live) -> Result<ModelReply, ModelError> {
        self.0.complete(request, live).await
    }
}
