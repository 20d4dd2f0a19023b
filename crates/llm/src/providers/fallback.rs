//! A chain of models: if one fails, the next one is called.

#[cfg(test)]
mod tests;

use bcc_lang::message::ToMessage;
use std::sync::Arc;

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider, ReplyPolicy};
use crate::model::reply::{ModelReply, SkippedModel};
use crate::model::request::{ModelRequest, Purpose};

pub struct Fallback {
    first: Arc<dyn Provider>,
    others: Vec<Arc<dyn Provider>>,
}

impl Fallback {
    /// Creates a chain of `first` and `others`, which are called in order if it fails. It has the name and the reply policy of
    /// `first`.
    pub fn new(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>) -> Self {
        Self { first, others }
    }
}

/// Whether the next model is tried after this error: a request was sent and failed. Invalid requests and missing entries in a file of
/// replies are mistakes that another model must not hide.
const fn tries_next(error: &ModelError) -> bool {
    error.is_model_failure() && !matches!(error, ModelError::RecordedFailure { .. })
}

#[async_trait]
impl Provider for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.first.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.first.reply_policy()
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let mut skipped_models: Vec<SkippedModel> = Vec::new();
        let mut error = match self.first.complete(request, live).await {
            Err(error) if tries_next(&error) => error,
            result => return result,
        };
        let mut current = &self.first;
        let task = &request.task;
        for next in self.others.iter().filter(|other| other.answers(task.purpose, &task.action_id)) {
            let (from, to, kind) = (current.name(), next.name(), error.kind());
            tracing::debug!(from, to, kind, "asking the next model of the chain");
            skipped_models.push(failed_model(current.as_ref(), &error));
            live.restart();
            match next.complete(request, live).await {
                Ok(reply) => {
                    let earlier_attempts =
                        skipped_models.iter().fold(0_u32, |sum, model| sum.saturating_add(model.attempts));
                    return Ok(ModelReply {
                        attempts: reply.attempts.saturating_add(earlier_attempts),
                        answered_by: Some(next.name().to_owned()),
                        skipped_models,
                        ..reply
                    });
                }
                Err(failed) => error = failed,
            }
            current = next;
            if !tries_next(&error) {
                break;
            }
        }
        if skipped_models.is_empty() {
            return Err(error);
        }
        skipped_models.push(failed_model(current.as_ref(), &error));
        Err(ModelError::NoneAnswered { skipped_models })
    }
}

fn failed_model(provider: &dyn Provider, error: &ModelError) -> SkippedModel {
    SkippedModel { model: provider.name().to_owned(), error: error.to_message(), attempts: error.attempts() }
}
