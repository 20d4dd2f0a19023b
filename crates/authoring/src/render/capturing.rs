//! The model that is asked when a prompt is only looked at: it keeps what it is sent, and answers so that the talk goes on.

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
pub struct CapturedPrompt {
    /// The name under which the model was asked for; none for the session's own.
    pub model: Option<String>,
    pub request: ModelRequest,
}

#[derive(Clone, Default)]
pub struct CapturingModels(Arc<Mutex<Vec<CapturedPrompt>>>);

impl CapturingModels {
    pub fn take(&self) -> Vec<CapturedPrompt> {
        std::mem::take(&mut *self.heard())
    }

    fn heard(&self) -> MutexGuard<'_, Vec<CapturedPrompt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelProviders for CapturingModels {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(Arc::new(CapturingProvider { to: self.clone(), model: name.map(str::to_owned) }))
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(CapturingProvider { to: self.clone(), model: None }))
    }
}

struct CapturingProvider {
    to: CapturingModels,
    model: Option<String>,
}

#[async_trait]
impl Provider for CapturingProvider {
    fn name(&self) -> &str {
        "nobody"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.to.heard().push(CapturedPrompt { model: self.model.clone(), request: request.clone() });
        let task = &request.task;
        let mut reply = of_defaults(request.schema.as_deref());
        if task.purpose == Purpose::Action {
            // What the author wants said is as near to an opening as one gets without a model.
            let words = if task.opening { task.content.clone() } else { reply_of(task.round) };
            reply.insert("content".to_owned(), words.into());
            reply.insert("EXIT".to_owned(), "NO".into());
        }
        Ok(ModelReply { text: Value::Object(reply).to_string(), attempts: 1, ..ModelReply::default() })
    }
}

/// A reply of this schema that says nothing, with all of its fields, so that nothing about it is worth a warning.
fn of_defaults(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let default = |field: &Value| field.get("default").cloned().unwrap_or_default();
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), default(field))).collect()
}

/// What stands for the reply in which the model judged the answer of a round.
pub fn reply_of(round: u32) -> String {
    format!("⟦reply of round {round}⟧")
}

/// What stands for an answer of the person that was not given.
pub fn answer_of(round: u32) -> String {
    format!("⟦answer of round {round}⟧")
}

/// The behavior servers, of which none is asked for the sake of a prompt.
pub struct NoPrompt;

impl BehaviorServers for NoPrompt {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        Err(ServerError {
            code: "no-prompt",
            message: msg!("the behavior server `{name}` is asked here, not a model: there is no prompt to show"),
            help: Some(Message::word("`bcc-script schema protocol-request` prints what a server receives")),
        })
    }
}

pub struct IgnoreEvents;

impl Observer for IgnoreEvents {
    fn delta(&self, _delta: &Delta<'_>) {}
}
