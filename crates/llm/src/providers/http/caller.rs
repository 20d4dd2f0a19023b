//! One call of a model: attempts until one brings a reply, or there is no hope.

use std::fmt;
use std::marker::PhantomData;

use crate::model::error::ModelError;
use crate::model::provider::Live;
use crate::model::reply::ModelReply;
use crate::model::request::ModelRequest;
use crate::model::tokens;
use crate::providers::http::asking::{Asking, Form, Learned};
use crate::providers::http::config::{ServerConfig, Structured, refuse};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::Answer;
use crate::providers::http::server::Server;
use crate::providers::retry::Retries;

/// Characters of the model's name that are taken from a server.
const LONGEST_MODEL_NAME: usize = 200;

/// One model of one server, spoken to in one dialect. Cheap to ask many times: connections are kept.
pub(crate) struct Caller<D> {
    name: String,
    server: Server,
    /// The form that the settings name.
    form: Option<Form>,
    learned: Learned,
    dialect: PhantomData<D>,
}

impl<D> fmt::Debug for Caller<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("name", &self.name).field("server", &self.server).finish_non_exhaustive()
    }
}

impl<D: Dialect> Caller<D> {
    /// A caller with these settings. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Config`] for settings that cannot work.
    pub(crate) fn new(config: ServerConfig) -> Result<Self, ModelError> {
        let form = Form::of(config.structured);
        let known = |form: &Form| D::LADDER.contains(form) || D::OTHER_FORMS.contains(form);
        if let Some(unknown) = form.filter(|form| !known(form)) {
            let all = Structured::ALL.into_iter();
            let names = all.filter(|structured| Form::of(*structured).is_none_or(|form| known(&form)));
            let names: Vec<String> = names.map(|structured| format!("\"{}\"", structured.name())).collect();
            return Err(refuse(&format!(
                "`structured` cannot be \"{}\" for the provider `{}`; write {}",
                unknown.structured().name(),
                D::NAME,
                names.join(", ")
            )));
        }
        let name = format!("{}:{}", D::NAME, config.model);
        let server = Server::new::<D>(config)?;
        Ok(Self { name, server, form, learned: Learned::default(), dialect: PhantomData })
    }

    /// The name shown in events.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and gives the whole reply.
    ///
    /// # Errors
    /// [`ModelError`] of the last attempt.
    pub(crate) async fn complete(&self, request: &ModelRequest, live: &mut dyn Live) -> Result<ModelReply, ModelError> {
        let config = &self.server.config;
        let ladder = if self.form.is_some() || request.schema.is_none() { &[] } else { D::LADDER };
        let mut retries = Retries::new(config.max_attempts, config.first_backoff);
        let began = self.learned.asking(self.form, request.schema.is_some(), D::LADDER);
        let mut asking = began;
        loop {
            let body = D::encode(config, request, asking)
                .map_err(|error| refuse(&format!("the request cannot be written ({error})")))?;
            let sent = retries.count();
            let failed = match self.server.attempt::<D>(body, asking.form == Form::Tool, live).await {
                Ok(answer) => {
                    self.learned.keep(asking, began, D::LADDER);
                    return Ok(self.reply(request, answer, sent));
                }
                Err(failed) => failed,
            };
            let (host, kind) = (&self.server.host, failed.error.kind());
            let refusal = failed.refusal.as_ref();
            let instead: Option<Asking> =
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

    fn reply(&self, request: &ModelRequest, answer: Answer, attempts: u32) -> ModelReply {
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
