//! A model behind an OpenAI-compatible chat-completions server, streamed, with retries.

pub mod body;
pub mod chunk;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::Client;
use reqwest::redirect::Policy;

use crate::model::error::ModelError;
use crate::model::provider::{Live, Provider};
use crate::model::providers::http::config::{ServerConfig, host_of, is_local};
use crate::model::providers::http::exchange::{Answer, Server};
use crate::model::providers::openai::body::encode;
use crate::model::providers::retry::Retries;
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::model::tokens;

/// Characters of the model's name that are taken from a server.
const LONGEST_MODEL_NAME: usize = 200;

/// One model of one server. Cheap to ask many times: connections are kept.
#[derive(Debug)]
pub struct OpenAi {
    name: String,
    server: Server,
    /// Whether the server has refused `stream_options`; it is not asked for them again.
    usage_refused: AtomicBool,
}

impl OpenAi {
    /// A provider with these settings. Nothing is sent yet.
    ///
    /// Redirections are not followed, so that prompts and the key go nowhere but to `base_url`; a server on this
    /// machine is reached without the proxy that the environment may name.
    ///
    /// # Errors
    /// [`ModelError::Config`] for settings that cannot work.
    pub fn new(config: ServerConfig) -> Result<Self, ModelError> {
        config.check()?;
        let endpoint = config.endpoint()?;
        let authorization = config.authorization()?;
        // An error means that one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client =
            Client::builder().redirect(Policy::none()).user_agent(concat!("bcc-script/", env!("CARGO_PKG_VERSION")));
        if is_local(&endpoint) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| ModelError::Config {
            message: format!("cannot set up the HTTP client ({})", error.without_url()),
        })?;
        let name = format!("openai:{}", config.model);
        let host = host_of(&endpoint);
        let server = Server { client, endpoint, host, authorization, config };
        Ok(Self { name, server, usage_refused: AtomicBool::new(false) })
    }

    fn reply(&self, request: &ModelRequest, answer: Answer, attempts: u32) -> ModelReply {
        let model = answer.model.unwrap_or_else(|| self.server.config.model.clone());
        ModelReply {
            model: model.chars().take(LONGEST_MODEL_NAME).collect(),
            tokens_in: answer.tokens_in.or_else(|| Some(tokens::estimate_prompt(&request.messages))),
            tokens_out: answer.tokens_out.or_else(|| Some(tokens::estimate(&answer.text))),
            text: answer.text,
            attempts,
            ..ModelReply::default()
        }
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn Live) -> Result<ModelReply, ModelError> {
        let config = &self.server.config;
        let mut retries = Retries::new(config.max_attempts, config.first_backoff);
        loop {
            let ask_usage = !self.usage_refused.load(Ordering::Relaxed);
            let body = encode(config, request, ask_usage)
                .map_err(|error| ModelError::Config { message: format!("the request cannot be written ({error})") })?;
            let sent = retries.count();
            let failed = match self.server.attempt(body, live).await {
                Ok(answer) => return Ok(self.reply(request, answer, sent)),
                Err(failed) => failed,
            };
            if ask_usage && failed.refuses_usage {
                // Not a failure of the call: it is made again at once, and costs none of its attempts.
                self.usage_refused.store(true, Ordering::Relaxed);
                retries.grant();
            } else {
                let Some(pause) = retries.pause_after(&failed.error) else {
                    return Err(failed.error.after_attempts(sent));
                };
                let (host, kind) = (&self.server.host, failed.error.kind());
                tracing::debug!(host, kind, sent, pause_ms = pause.as_millis(), "asking the model again");
                tokio::time::sleep(pause).await;
            }
            live.restart();
        }
    }
}
