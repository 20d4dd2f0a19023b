//! What is sent: the body of a messages request. The API wants what chat completions leave free: the system's words apart,
//! a first message of the user, roles that take turns, no empty text, and a limit of the reply.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::message::{ChatMessage, Role};
use crate::model::request::ModelRequest;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::request_features::RequestFeatures;

/// The most tokens of a reply where nobody says. The oldest of the models take no more.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

const REPLY: &str = "reply";

const BETWEEN: &str = "\n\n";

/// What the user says where the API wants a message of theirs and the prompt has none.
const NOTHING: &str = "…";

/// The body as JSON. Nothing of the request's `task` is in it.
pub(crate) fn encode(
    config: &ServerConfig,
    request: &ModelRequest,
    asking: RequestFeatures,
) -> serde_json::Result<Vec<u8>> {
    let tool = request.schema.as_deref().filter(|_| asking.form == Structured::Tool);
    let (system, messages) = arrange(&request.messages);
    serde_json::to_vec(&Body {
        model: &config.model,
        max_tokens: request.max_tokens.or(config.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS),
        system,
        messages,
        stream: true,
        temperature: request.temperature.or(config.temperature),
        tools: tool.map(|schema| {
            [Tool { name: REPLY, description: "Gives the reply. Call it exactly once.", input_schema: schema }]
        }),
        tool_choice: tool.map(|_| ToolChoice { r#type: "tool", name: REPLY, disable_parallel_tool_use: true }),
        extra: &config.extra,
    })
}

/// The system's words, and the rest in turns that begin and end with the user. A prompt that is all the system's is the
/// user's, as a template without role lines is. The last turn is never the assistant's: the API would have it
/// continued instead of answered.
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
                joined.push_str(BETWEEN);
                joined.push_str(&message.content);
            }
            _ => turns.push(Turn { role, content: Cow::Borrowed(&message.content) }),
        }
    }
    let system = (!system.is_empty()).then(|| system.join(BETWEEN));
    if turns.is_empty() {
        let content = system.map_or(Cow::Borrowed(NOTHING), Cow::Owned);
        return (None, vec![Turn { role: "user", content }]);
    }
    let nothing = || Turn { role: "user", content: Cow::Borrowed(NOTHING) };
    if turns.first().is_some_and(|turn| turn.role != "user") {
        turns.insert(0, nothing());
    }
    if turns.last().is_some_and(|turn| turn.role != "user") {
        turns.push(nothing());
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

    fn arranged(messages: &[(Role, &str)]) -> (Option<String>, Vec<(&'static str, String)>) {
        let messages: Vec<ChatMessage> =
            messages.iter().map(|(role, content)| ChatMessage { role: *role, content: (*content).into() }).collect();
        let (system, turns) = arrange(&messages);
        (system, turns.into_iter().map(|turn| (turn.role, turn.content.into_owned())).collect())
    }

    #[test]
    fn any_prompt_becomes_turns_that_begin_and_end_with_the_user() {
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
            let (told, arranged) = arranged(messages);
            assert_eq!(told.as_deref(), system, "{messages:?}");
            let arranged: Vec<(&str, &str)> = arranged.iter().map(|(role, text)| (*role, text.as_str())).collect();
            assert_eq!(arranged, turns, "{messages:?}");
        }
    }
}
