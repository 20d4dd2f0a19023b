//! Encodes the body of a messages request. Unlike chat completions, the API requires a separate system text, a first message of the
//! user, alternating roles, no empty text, and a token limit.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::message::{ChatMessage, Role};
use crate::model::request::ModelRequest;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::request_features::RequestFeatures;

/// The default token limit of a reply. The oldest models support no more.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 4096;

const TOOL_NAME: &str = "reply";

const SEPARATOR: &str = "\n\n";

/// The user message where the API requires one and the prompt has none.
const PLACEHOLDER: &str = "…";

/// Encodes the body as JSON. It contains no part of the request's `task`.
pub(crate) fn encode(
    config: &ServerConfig,
    request: &ModelRequest,
    features: RequestFeatures,
) -> serde_json::Result<Vec<u8>> {
    let tool = request.schema.as_deref().filter(|_| features.form == Structured::Tool);
    let (system, messages) = arrange(&request.messages);
    serde_json::to_vec(&Body {
        model: &config.model,
        max_tokens: request.max_tokens.or(config.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS),
        system,
        messages,
        stream: true,
        temperature: request.temperature.or(config.temperature),
        tools: tool.map(|schema| {
            [Tool { name: TOOL_NAME, description: "Gives the reply. Call it exactly once.", input_schema: schema }]
        }),
        tool_choice: tool.map(|_| ToolChoice { r#type: "tool", name: TOOL_NAME, disable_parallel_tool_use: true }),
        extra: &config.extra,
    })
}

/// Splits the messages into the system text and turns that start and end with the user. If there are only system messages, they become
/// a user message, like a template without role lines. The last turn is never that of the assistant, because the API would continue
/// it instead of replying.
fn arrange(messages: &[ChatMessage]) -> (Option<String>, Vec<Turn<'_>>) {
    let mut system: Vec<&str> = Vec::new();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages.iter().filter(|message| !message.content.trim().is_empty()) {
        let role = match message.role {
            Role::System => {
                system.push(&message.content);
                continue;
            }
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match turns.last_mut() {
            Some(last) if last.role == role => {
                let joined = last.content.to_mut();
                joined.push_str(SEPARATOR);
                joined.push_str(&message.content);
            }
            _ => turns.push(Turn { role, content: Cow::Borrowed(&message.content) }),
        }
    }
    let system = (!system.is_empty()).then(|| system.join(SEPARATOR));
    if turns.is_empty() {
        let content = system.map_or(Cow::Borrowed(PLACEHOLDER), Cow::Owned);
        return (None, vec![Turn { role: "user", content }]);
    }
    let placeholder = || Turn { role: "user", content: Cow::Borrowed(PLACEHOLDER) };
    if turns.first().is_some_and(|turn| turn.role != "user") {
        turns.insert(0, placeholder());
    }
    if turns.last().is_some_and(|turn| turn.role != "user") {
        turns.push(placeholder());
    }
    (system, turns)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    messages: Vec<Turn<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    description: &'static str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct ToolChoice {
    r#type: &'static str,
    name: &'static str,
    disable_parallel_tool_use: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrange_messages(messages: &[(Role, &str)]) -> (Option<String>, Vec<(&'static str, String)>) {
        let messages: Vec<ChatMessage> =
            messages.iter().map(|(role, content)| ChatMessage { role: *role, content: (*content).into() }).collect();
        let (system, turns) = arrange(&messages);
        (system, turns.into_iter().map(|turn| (turn.role, turn.content.into_owned())).collect())
    }

    #[test]
    fn any_prompt_becomes_turns_that_start_and_end_with_the_user() {
        use Role::{Assistant, System, User};
        type Case<'a> = (&'a [(Role, &'a str)], Option<&'a str>, &'a [(&'a str, &'a str)]);
        let table: [Case<'_>; 9] = [
            (&[(System, "规则"), (User, "你好")], Some("规则"), &[("user", "你好")]),
            (&[(System, "a"), (User, "b"), (System, "c")], Some("a\n\nc"), &[("user", "b")]),
            (&[(User, "a"), (User, "b")], None, &[("user", "a\n\nb")]),
            (
                &[(User, "a"), (Assistant, "b"), (Assistant, "c"), (User, "d")],
                None,
                &[("user", "a"), ("assistant", "b\n\nc"), ("user", "d")],
            ),
            (&[(Assistant, "您好"), (User, "嗯")], None, &[("user", "…"), ("assistant", "您好"), ("user", "嗯")]),
            (&[(User, "a"), (Assistant, "b")], None, &[("user", "a"), ("assistant", "b"), ("user", "…")]),
            (&[(User, "a"), (Assistant, " \n"), (User, "b")], None, &[("user", "a\n\nb")]),
            (&[(System, "全部规则")], None, &[("user", "全部规则")]),
            (&[(User, "")], None, &[("user", "…")]),
        ];
        for (messages, system, turns) in table {
            let (system_text, arranged) = arrange_messages(messages);
            assert_eq!(system_text.as_deref(), system, "{messages:?}");
            let arranged: Vec<(&str, &str)> = arranged.iter().map(|(role, text)| (*role, text.as_str())).collect();
            assert_eq!(arranged, turns, "{messages:?}");
        }
    }
}
