//! A model behind Anthropic's messages API, or a server that speaks it, streamed, with retries.

pub mod body;
pub mod event;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::model::error::ModelError;
use crate::model::provider::{Live, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::providers::anthropic::body::encode;
use crate::providers::anthropic::event::read;
use crate::providers::http::address::endpoint;
use crate::providers::http::asking::{Asking, Form};
use crate::providers::http::caller::Caller;
use crate::providers::http::chunk::Chunk;
use crate::providers::http::config::ServerConfig;
use crate::providers::http::dialect::Dialect;
use crate::providers::http::headers::secret;

/// Where Anthropic itself listens.
pub const ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API that is spoken here.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The dialect of Anthropic's messages.
#[derive(Debug)]
pub struct Messages;

impl Dialect for Messages {
    const NAME: &'static str = "anthropic";

    const LADDER: &'static [Form] = &[Form::Tool, Form::Off];

    const OTHER_FORMS: &'static [Form] = &[];

    const OWNED: &'static [(&'static str, &'static str)] = &[
        ("model", "write `model` beside it"),
        ("messages", "they are the prompt"),
        ("system", "it is the prompt's"),
        ("stream", "replies are always streamed"),
        ("temperature", "write `temperature` beside it"),
        ("max_tokens", "write `max_tokens` beside it"),
        ("tools", "write `structured = \"tool\"` beside it"),
        ("tool_choice", "write `structured = \"tool\"` beside it"),
    ];

    fn endpoint(config: &ServerConfig) -> Result<Url, ModelError> {
        endpoint(&config.base_url, &["v1", "messages"], ANTHROPIC_BASE_URL)
    }

    fn headers(config: &ServerConfig) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
        if let Some(key) = config.key() {
            headers.insert(HeaderName::from_static("x-api-key"), secret(key, "the API key")?);
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
pub struct Anthropic(Caller<Messages>);

impl Anthropic {
    /// A provider with these settings. Nothing is sent yet. `base_url` is mostly [`ANTHROPIC_BASE_URL`].
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
impl Provider for Anthropic {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn Live) -> Result<ModelReply, ModelError> {
        self.0.complete(request, live).await
    }
}
