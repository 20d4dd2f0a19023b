//! Calls a model, with retries until a reply or a permanent error.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use tracing::Instrument;

use crate::http::retry::Retries;
use crate::model::call_span::{call_span, record_end};
use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider, RetryLimiter, UnlimitedRetries};
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::model::tokens;
use crate::providers::http::config::{ServerConfig, Structured, config_error};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::{HttpAnswer, MAX_MODEL_NAME_CHARS};
use crate::providers::http::request_features::{LearnedFeatures, RequestFeatures};
use crate::providers::http::server::ModelServer;

/// One model of one server with one API. It reuses connections. Its debug output contains no secrets.
#[derive(Debug)]
pub struct Caller {
    name: String,
    server: ModelServer,
    form: Option<Structured>,
    features: LearnedFeatures,
    dialect: &'static Dialect,
}

impl Caller {
    /// Creates a caller without sending anything. It does not follow redirects, so that prompts and the key are sent only to `base_url`.
    pub fn new(dialect: &'static Dialect, config: ServerConfig) -> Result<Self, ModelError> {
        if !dialect.forms().any(|form| form == config.structured) {
            let names = Message::values(dialect.forms().map(|form| format!("\"{}\"", form.name())));
            return Err(config_error(msg!(
                "`structured` cannot be \"{}\" for the provider `{}`; write {}",
                config.structured.name(),
                dialect.name,
                names
            )));
        }
        let (name, form) = (
            format!("{}:{}", dialect.name, config.model),
            Some(config.structured).filter(|form| *form != Structured::Auto),
        );
        let server = ModelServer::new(dialect, config)?;
        Ok(Self { name, server, form, features: LearnedFeatures::default(), dialect })
    }

    fn reply(&self, request: &ModelRequest, answer: HttpAnswer, attempts: u32) -> ModelReply {
        let model = answer.model.unwrap_or_else(|| self.server.config.model.clone());
        let counted = answer.tokens_in.is_some() && answer.tokens_out.is_some();
        ModelReply {
            counted,
            model: model.chars().take(MAX_MODEL_NAME_CHARS).collect(),
            tokens_in: answer.tokens_in.or_else(|| Some(tokens::estimate_prompt(&request.messages))),
            tokens_out: answer.tokens_out.or_else(|| Some(tokens::estimate(&answer.text))),
            tokens_cached: answer.tokens_cached,
            text: answer.text,
            attempts,
            cut_off: answer.cut_off,
            finish_reason: answer.finish_reason,
            refused: answer.refused,
            ..ModelReply::default()
        }
    }
}

#[async_trait]
impl Provider for Caller {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.complete_with_retries(request, live, &UnlimitedRetries).await
    }

    async fn complete_with_retries(
        &self,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
        limiter: &dyn RetryLimiter,
    ) -> Result<ModelReply, ModelError> {
        let config = &self.server.config;
        let auto_forms = self.dialect.auto_forms;
        let allowed_forms = if self.form.is_some() || request.schema.is_none() { &[] } else { auto_forms };
        let mut retries = Retries::new(config.max_attempts, config.first_backoff);
        let initial = self.features.current(self.form, request.schema.is_some(), auto_forms);
        let mut current = initial;
        loop {
            let body = (self.dialect.encode)(config, request, current)
                .map_err(|error| config_error(msg!("cannot encode the request ({error})")))?;
            let sent = retries.count();
            let span = call_span(self.server.called(self.dialect), &request.task, sent);
            let attempt = self.server.attempt(self.dialect, body, request, current.form == Structured::Tool, live);
            let ended = attempt.instrument(span.clone()).await;
            record_end(&span, ended.as_ref().map(HttpAnswer::reported).map_err(|failed| &failed.error));
            let failed = match ended {
                Ok(answer) => {
                    self.features.store(current, initial, auto_forms);
                    return Ok(self.reply(request, answer, sent));
                }
                Err(failed) => failed,
            };
            let (host, kind) = (&self.server.host, failed.error.kind());
            let rejection = failed.rejection.as_ref();
            let instead: Option<RequestFeatures> = rejection
                .and_then(|rejection| current.alternative(rejection, allowed_forms, current.form == initial.form));
            if let Some(instead) = instead {
                // This is not a failure of the call: it is retried immediately and does not count as an attempt.
                tracing::debug!(host, kind, sent, ?instead, "asking the model for less");
                current = instead;
                retries.add_attempt();
            } else {
                let Some(pause) = retries.pause_after(&failed.error) else {
                    return Err(failed.error.with_attempts(sent));
                };
                tracing::debug!(host, kind, sent, pause_ms = pause.as_millis(), "asking the model again");
                tokio::time::sleep(pause).await;
            }
            limiter.admit_retry().await;
            live.restart();
        }
    }
}
