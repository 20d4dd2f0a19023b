//! A model as its configuration wants it: behind its limits, with its price, and read in its manner.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::{Cost, ModelReply};
use crate::model::request::{ModelRequest, Purpose};
use crate::model::tokens::estimate_prompt;
use crate::providers::rate_limiter::RateLimiter;

/// How many tokens a reply is expected to have before it is there, where `max_tokens` does not say fewer.
const USUAL_REPLY: u64 = 400;

#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Of `per` tokens of a prompt.
    pub input: f64,
    /// Of `per` tokens of a reply.
    pub output: f64,
    /// Of `per` tokens of a prompt that the server had kept from an earlier call; `None`: as any other.
    pub cached: Option<f64>,
    /// The currency: `USD`, `CNY`.
    pub currency: String,
    /// How many tokens a price is for.
    pub per: u64,
}

impl Price {
    /// What a reply cost; `None` where no model was involved.
    pub fn of(&self, reply: &ModelReply) -> Option<Cost> {
        let (tokens_in, tokens_out) = (reply.tokens_in?, reply.tokens_out?);
        let cached = reply.tokens_cached.unwrap_or(0).min(tokens_in);
        // Counts of tokens are far below 2^53.
        let parts =
            [(tokens_in - cached, self.input), (cached, self.cached.unwrap_or(self.input)), (tokens_out, self.output)];
        let amount: f64 = parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum();
        Some(Cost { amount: amount / self.per.max(1) as f64, currency: self.currency.clone() })
    }
}

/// A model with what `bcc-script.toml` says of it beyond its server.
pub struct ConfiguredModel {
    pub provider: Arc<dyn Provider>,
    /// Its limits, shared with everybody who asks the same model.
    pub gate: Option<Arc<RateLimiter>>,
    pub price: Option<Price>,
    pub manners: ReplyPolicy,
    /// The most tokens of one reply where a request says nothing else.
    pub max_tokens: Option<u32>,
}

impl ConfiguredModel {
    fn expected(&self, request: &ModelRequest) -> u64 {
        let most = request.max_tokens.or(self.max_tokens).map_or(USUAL_REPLY, u64::from);
        estimate_prompt(&request.messages).saturating_add(most.min(USUAL_REPLY))
    }

    async fn limited(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let Some(gate) = &self.gate else { return self.provider.complete(request, live).await };
        let pass = gate.enter(self.expected(request)).await;
        let result = self.provider.complete(request, live).await;
        match &result {
            Ok(reply) => {
                let tokens = reply.tokens_in.unwrap_or(0).saturating_add(reply.tokens_out.unwrap_or(0));
                pass.settle(reply.attempts, Some(tokens));
            }
            // What a server refused, or never saw, used no tokens; of the rest nobody knows.
            Err(error @ (ModelError::Http { .. } | ModelError::Unreachable { .. })) => {
                pass.settle(error.attempts(), Some(0));
            }
            Err(error) => pass.settle(error.attempts(), None),
        }
        result
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

    fn manners(&self) -> ReplyPolicy {
        self.manners
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut reply = self.limited(request, live).await?;
        reply.cost = self.price.as_ref().and_then(|price| price.of(&reply));
        Ok(reply)
    }
}
