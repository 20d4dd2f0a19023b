//! One call of a model: attempts until one brings a reply, or there is no hope.

use async_trait::async_trait;
use bcc_lang::message::msg;

use crate::http::retry::Retries;
use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::model::tokens;
use crate::providers::http::config::{ServerConfig, Structured, refuse};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::HttpAnswer;
use crate::providers::http::request_features::{Learned, RequestFeatures};
use crate::providers::http::server::ModelServer;

/// Characters of the model's name that are taken from a server.
const LONGEST_MODEL_NAME: usize = 200;

/// One model of one server, spoken to in one dialect. Cheap to ask many times: connections are kept. Its debug form shows no secret.
#[derive(Debug)]
pub struct Caller {
    name: String,
    server: ModelServer,
    form: Option<Structured>,
    learned: Learned,
    dialect: &'static Dialect,
}

impl Caller {
    /// A caller with these settings. Nothing is sent yet. Redirections are not followed, so that prompts and the key go nowhere but to
    /// `base_url`.
    pub fn new(dialect: &'static Dialect, config: ServerConfig) -> Result<Self, ModelError> {
        if !dialect.forms().any(|form| form == config.structured) {
            let names: Vec<String> = dialect.forms().map(|form| format!("\"{}\"", form.name())).collect();
            return Err(refuse(msg!(
                "`structured` cannot be \"{}\" for the provider `{}`; write {}",
                config.structured.name(),
                dialect.name,
                names.join(", ")
            )));
        }
        let (name, form) = (
            format!("{}:{}", dialect.name, config.model),
            Some(config.structured).filter(|form| *form != Structured::Auto),
        );
        let server = ModelServer::new(dialect, config)?;
        Ok(Self { name, server, form, learned: Learned::default(), dialect })
    }

    fn reply(&self, request: &ModelRequest, answer: HttpAnswer, attempts: u32) -> ModelReply {
        let model = answer.model.unwrap_or_else(|| self.server.config.model.clone());
        let counted = answer.tokens_in.is_some() && answer.tokens_out.is_some();
        ModelReply {
            counted,
            model: model.chars().take(LONGEST_MODEL_NAME).collect(),
            tokens_in: answer.tokens_in.or_else(|| Some(tokens::estimate_prompt(&request.messages))),
            tokens_out: answer.tokens_out.or_else(|| Some(tokens::estimate(&answer.text))),
            tokens_cached: answer.tokens_cached,
            text: answer.text,
            attempts,
            cut_off: answer.cut_off,
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
        let config = &self.server.config;
        let whole = self.dialect.ladder;
        let ladder = if self.form.is_some() || request.schema.is_none() { &[] } else { whole };
        let mut retries = Retries::new(config.max_attempts, config.first_backoff);
        let began = self.learned.asking(self.form, request.schema.is_some(), whole);
        let mut asking = began;
        loop {
            let body = (self.dialect.encode)(config, request, asking)
                .map_err(|error| refuse(msg!("cannot encode the request ({error})")))?;
            let sent = retries.count();
            let failed = match self.server.attempt(self.dialect, body, asking.form == Structured::Tool, live).await {
                Ok(answer) => {
                    self.learned.keep(asking, began, whole);
                    return Ok(self.reply(request, answer, sent));
                }
                Err(failed) => failed,
            };
            let (host, kind) = (&self.server.host, failed.error.kind());
            let refusal = failed.refusal.as_ref();
            let instead: Option<RequestFeatures> =
                refusal.and_then(|refusal| asking.instead(refusal, ladder, asking.form == began.form));
            if let Some(instead) = instead {
                // Not a failure of the call: it is made again at once, and costs none of its attempts.
                tracing::debug!(host, kind, sent, ?instead, "asking the model for less");
                asking = instead;
                retries.grant();
            } else {
                let Some(pause) = retries.pause_after(&failed.error) else {
                    return Err(failed.error.after_attempts(sent));
                };
                tracing::debug!(host, kind, sent, pause_ms = pause.as_millis(), "asking the model again");
                tokio::time::sleep(pause).await;
            }
            live.restart();
        }
    }
}
