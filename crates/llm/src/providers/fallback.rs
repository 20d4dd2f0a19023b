//! A chain of models: when one gives no reply, the next one is asked.

#[cfg(test)]
mod tests;

use bcc_lang::message::ToMessage;
use std::sync::Arc;

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::{ModelReply, PassedOver};
use crate::model::request::{ModelRequest, Purpose};

pub struct Fallback {
    first: Arc<dyn Provider>,
    others: Vec<Arc<dyn Provider>>,
}

impl Fallback {
    /// `first`, and `others` in the order in which they are asked when it gives no reply. It is known by the name of
    /// `first`, and its replies are read with the manners of `first`.
    pub fn new(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>) -> Self {
        Self { first, others }
    }
}

/// Whether another model may well answer where this error came: something was sent, and no reply came of it. What cannot
/// be sent at all, or what a file of replies lacks, is a mistake that no other model should cover.
const fn passes_on(error: &ModelError) -> bool {
    error.is_of_a_model() && !matches!(error, ModelError::FailedThen { .. })
}

#[async_trait]
impl Provider for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.first.answers(purpose, action_id)
    }

    fn manners(&self) -> ReplyPolicy {
        self.first.manners()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut passed_over: Vec<PassedOver> = Vec::new();
        let mut error = match self.first.complete(request, live).await {
            Err(error) if passes_on(&error) => error,
            settled => return settled,
        };
        let mut asked = &self.first;
        let task = &request.task;
        for next in self.others.iter().filter(|other| other.answers(task.purpose, &task.action_id)) {
            let (from, to, kind) = (asked.name(), next.name(), error.kind());
            tracing::debug!(from, to, kind, "asking the next model of the chain");
            passed_over.push(passed(asked.as_ref(), &error));
            live.restart();
            match next.complete(request, live).await {
                Ok(reply) => {
                    let before = passed_over.iter().fold(0_u32, |sum, passed| sum.saturating_add(passed.attempts));
                    return Ok(ModelReply {
                        attempts: reply.attempts.saturating_add(before),
                        answered_by: Some(next.name().to_owned()),
                        passed_over,
                        ..reply
                    });
                }
                Err(failed) => error = failed,
            }
            asked = next;
            if !passes_on(&error) {
                break;
            }
        }
        if passed_over.is_empty() {
            return Err(error);
        }
        passed_over.push(passed(asked.as_ref(), &error));
        Err(ModelError::NoneAnswered { passed_over })
    }
}

fn passed(provider: &dyn Provider, error: &ModelError) -> PassedOver {
    PassedOver { model: provider.name().to_owned(), error: error.to_message(), attempts: error.attempts() }
}
