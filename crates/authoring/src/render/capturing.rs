//! A model provider that captures its requests and answers so that the conversation continues.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value};

use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_runtime::effects::behaviors::{BehaviorServer, ServerError};
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::program::host_services::BehaviorServers;
use bcc_runtime::program::models::ModelProviders;

#[derive(Clone, Debug)]
pub(crate) struct CapturedPrompt {
    /// The requested model; `None` for that of the session.
    pub model: Option<String>,
    pub request: ModelRequest,
}

#[derive(Clone, Default)]
pub(crate) struct CapturingModels(Arc<Mutex<Vec<CapturedPrompt>>>);

impl CapturingModels {
    pub(crate) fn take(&self) -> Vec<CapturedPrompt> {
        std::mem::take(&mut *self.captured())
    }

    fn captured(&self) -> MutexGuard<'_, Vec<CapturedPrompt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelProviders for CapturingModels {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(Arc::new(CapturingProvider { models: self.clone(), model: name.map(str::to_owned) }))
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(CapturingProvider { models: self.clone(), model: None }))
    }
}

struct CapturingProvider {
    models: CapturingModels,
    model: Option<String>,
}

#[async_trait]
impl Provider for CapturingProvider {
    fn name(&self) -> &str {
        "nobody"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.models.captured().push(CapturedPrompt { model: self.model.clone(), request: request.clone() });
        let task = &request.task;
        let mut reply = default_reply(request.schema.as_deref());
        if task.purpose == Purpose::Action {
            // Without a model, the author's content is the best approximation of an opening.
            let content = if task.opening { task.content.clone() } else { reply_placeholder(task.round) };
            reply.insert("content".to_owned(), content.into());
            reply.insert("EXIT".to_owned(), "NO".into());
        }
        Ok(ModelReply { text: Value::Object(reply).to_string(), attempts: 1, ..ModelReply::default() })
    }
}

/// An empty reply with all fields of this schema, so that it causes no warnings.
fn default_reply(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let default = |field: &Value| field.get("default").cloned().unwrap_or_default();
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), default(field))).collect()
}

/// A placeholder for the reply in which the model evaluated the answer of a round.
pub(crate) fn reply_placeholder(round: u32) -> String {
    format!("⟦reply of round {round}⟧")
}

/// A placeholder for an answer that was not given.
pub(crate) fn answer_placeholder(round: u32) -> String {
    format!("⟦answer of round {round}⟧")
}

/// Behavior servers that reject all requests, because they have no prompt.
pub(crate) struct NoPrompt;

impl BehaviorServers for NoPrompt {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        Err(ServerError {
            code: "no-prompt",
            message: msg!("the behavior server `{name}` is asked here, not a model: there is no prompt to show"),
            help: Some(Message::word("`bcc-script schema protocol-request` prints what a server receives")),
        })
    }
}

pub(crate) struct IgnoreEvents;

impl Observer for IgnoreEvents {
    fn delta(&self, _delta: &Delta<'_>) {}
}
