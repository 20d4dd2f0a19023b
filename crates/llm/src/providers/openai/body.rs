//! Encodes the body of a chat completions request, field by field from the messages and the settings.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::message::ChatMessage;
use crate::model::request::ModelRequest;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::request_features::RequestFeatures;
use crate::reply::request_schema::{is_strict, without_min_length};

const REPLY_NAME: &str = "reply";

/// Encodes the body as JSON. It contains no part of the request's `task`.
pub(crate) fn encode(
    config: &ServerConfig,
    request: &ModelRequest,
    features: RequestFeatures,
) -> serde_json::Result<Vec<u8>> {
    let limit = request.max_tokens.or(config.max_tokens);
    let schema = request.schema.as_deref().map(|schema| match features.min_length {
        true => Cow::Borrowed(schema),
        false => Cow::Owned(without_min_length(schema)),
    });
    let schema = schema.as_deref();
    let tool = schema.filter(|_| features.form == Structured::Tool);
    serde_json::to_vec(&Body {
        model: &config.model,
        messages: &request.messages,
        stream: true,
        stream_options: features.usage.then_some(StreamOptions { include_usage: true }),
        temperature: request.temperature.or(config.temperature),
        max_tokens: limit.filter(|_| !features.completion_tokens),
        max_completion_tokens: limit.filter(|_| features.completion_tokens),
        response_format: schema.and_then(|schema| response_format(features, schema)),
        tools: tool.map(|schema| {
            [Tool { r#type: "function", function: Function { name: REPLY_NAME, parameters: Some(schema) } }]
        }),
        tool_choice: tool
            .map(|_| Tool { r#type: "function", function: Function { name: REPLY_NAME, parameters: None } }),
        extra: &config.extra,
    })
}

fn response_format(features: RequestFeatures, schema: &Value) -> Option<ResponseFormat<'_>> {
    match features.form {
        Structured::JsonSchema => Some(ResponseFormat {
            r#type: "json_schema",
            json_schema: Some(JsonSchema { name: REPLY_NAME, schema, strict: features.strict && is_strict(schema) }),
        }),
        Structured::JsonObject => Some(ResponseFormat { r#type: "json_object", json_schema: None }),
        Structured::Auto | Structured::Tool | Structured::Off => None,
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [ChatMessage],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Tool<'a>>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<JsonSchema<'a>>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Value>,
}
