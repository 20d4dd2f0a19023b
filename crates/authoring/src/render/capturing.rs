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

/// An empty reply with all fields of this schema, so that it causes neither warnings nor another call.
fn default_reply(schema: Option<&Value>) -> Map<String, Value> {
    match schema.map(default_value) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The default of a schema, or else its emptiest value. A schema that is sent has no defaults.
fn default_value(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        named => named.and_then(Value::as_str).into_iter().collect(),
    };
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().find(|choice| choice.is_null()).or_else(|| choices.first()).cloned().unwrap_or_default();
    }
    let Some(first) = types.first().filter(|_| !types.contains(&"null")) else { return Value::Null };
    match *first {
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            properties.map(|(name, field)| (name.clone(), default_value(field))).collect()
        }
        "array" => Value::Array(vec![]),
        "string" => "".into(),
        "boolean" => false.into(),
        "number" | "integer" => 0.into(),
        _ => Value::Null,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_empty_reply_satisfies_a_schema_without_defaults() {
        let schema = json!({ "type": "object", "properties": {
            "text": { "type": "string" },
            "name": { "type": ["string", "null"] },
            "state": { "type": "string", "enum": ["first", "second"] },
            "choice": { "enum": ["a", null] },
            "risk": { "type": "object", "properties": { "detected": { "type": "boolean" }, "steps": { "type": "array" } } },
            "count": { "type": "integer", "default": 3 },
        } });
        let expected = json!({ "text": "", "name": null, "state": "first", "choice": null,
            "risk": { "detected": false, "steps": [] }, "count": 3 });
        assert_eq!(Value::Object(default_reply(Some(&schema))), expected);
        assert!(default_reply(None).is_empty());
    }
}
