//! A model with the rate limits, price and reply policy of its configuration.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::{Cost, ModelReply};
use crate::model::request::{ModelRequest, Purpose};
use crate::model::tokens::estimate_prompt;
use crate::providers::rate_limiter::{Priority, RateLimiter};

/// The number of tokens that is assumed for a pending reply, unless `max_tokens` is lower.
const EXPECTED_REPLY_TOKENS: u64 = 400;

#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// The price of `per` tokens of a prompt.
    pub input: f64,
    /// The price of `per` tokens of a reply.
    pub output: f64,
    /// The price of `per` cached tokens of a prompt; `None` for the price of other tokens.
    pub cached: Option<f64>,
    /// The currency: `USD`, `CNY`.
    pub currency: String,
    /// The number of tokens that the prices are for.
    pub per: u64,
}

impl Price {
    /// The cost of a reply; `None` if no model was involved.
    pub fn cost(&self, reply: &ModelReply) -> Option<Cost> {
        let (tokens_in, tokens_out) = (reply.tokens_in?, reply.tokens_out?);
        let cached = reply.tokens_cached.unwrap_or(0).min(tokens_in);
        // Token counts are far below 2^53.
        let parts =
            [(tokens_in - cached, self.input), (cached, self.cached.unwrap_or(self.input)), (tokens_out, self.output)];
        let amount: f64 = parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum();
        Some(Cost { amount: amount / self.per.max(1) as f64, currency: self.currency.clone() })
    }
}

/// A model with its settings in `bcc-script.toml` other than those of its server.
pub struct ConfiguredModel {
    pub provider: Arc<dyn Provider>,
    /// Its rate limiter, shared by all users of the model.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    pub price: Option<Price>,
    pub reply_policy: ReplyPolicy,
    /// The token limit of a reply if the request has none.
    pub max_tokens: Option<u32>,
}

impl ConfiguredModel {
    fn estimated_tokens(&self, request: &ModelRequest) -> u64 {
        let max_tokens = request.max_tokens.or(self.max_tokens).map_or(EXPECTED_REPLY_TOKENS, u64::from);
        estimate_prompt(&request.messages).saturating_add(max_tokens.min(EXPECTED_REPLY_TOKENS))
    }

    async fn complete_with_limits(
        &self,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
    ) -> Result<ModelReply, ModelError> {
        let Some(limiter) = &self.rate_limiter else { return self.provider.complete(request, live).await };
        let (tokens, priority) = (self.estimated_tokens(request), Priority::from(request.task.purpose));
        loop {
            let permit = limiter.acquire(tokens, priority).await;
            let result = tokio::select! {
                biased;
                result = self.provider.complete_with_retries(request, live, &permit) => result,
                () = permit.withdrawn() => {
                    // It may have used tokens, so they stay counted. Whoever calls a model in the background limits how long it may take.
                    tracing::debug!(model = self.provider.name(), "a background call gives way and is made again");
                    live.restart();
                    continue;
                }
            };
            match &result {
                Ok(reply) => {
                    let tokens = reply.tokens_in.unwrap_or(0).saturating_add(reply.tokens_out.unwrap_or(0));
                    permit.settle(Some(tokens));
                }
                // Calls that were rejected or did not reach the server used no tokens; for other errors the usage is unknown.
                Err(ModelError::Http { .. } | ModelError::Unreachable { .. }) => permit.settle(Some(0)),
                Err(_) => permit.settle(None),
            }
            return result;
        }
    }
}

#[async_trait]
impl Provider for ConfiguredModel {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.provider.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.reply_policy
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut reply = self.complete_with_limits(request, live).await?;
        reply.cost = self.price.as_ref().and_then(|price| price.cost(&reply));
        Ok(reply)
    }
}
