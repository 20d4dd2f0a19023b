//! The request for a completion: what of it counts for a script.

use axum::http::HeaderMap;
use bcc_lang::message::msg;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::problem::Problem;

/// The longest history that is read, in messages.
const MAX_MESSAGES: usize = 20_000;

/// The longest id of a conversation, in bytes.
const MAX_CONVERSATION_BYTES: usize = 300;

/// The names under which clients send the id of a conversation in `metadata`.
const CONVERSATION_KEYS: [&str; 3] = ["chat_id", "conversation_id", "session_id"];

/// The name under which clients say in `metadata` that a request is a task of their own.
const TASK_KEY: &str = "task";

/// What the prompts of such tasks begin with where a client sends no header.
const TASK_PROMPT: &str = "### Task:";

/// A request for a completion. What is not listed here is for language models, and has no effect on a script.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ChatRequest {
    /// The script: its `session_id`, or its path in the project.
    pub(crate) model: String,
    /// The conversation so far. The last message is that of the person. Messages of the system have no effect.
    pub(crate) messages: Vec<HistoryMessage>,
    /// Whether the reply is streamed.
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    /// The user whose global variables the session uses.
    #[schema(max_length = 200)]
    pub(crate) user: Option<String>,
    /// `chat_id` is the id of the conversation, if no header has it.
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
pub(crate) struct StreamOptions {
    /// Whether the last piece tells the number of tokens.
    #[serde(default)]
    pub(crate) include_usage: bool,
}

/// A message of the history.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct HistoryMessage {
    /// `user` and `assistant` count.
    pub(crate) role: String,
    /// A text, or a list of parts of the type `text`.
    #[schema(value_type = Option<Object>)]
    pub(crate) content: Option<Value>,
}

/// A message of the conversation, as the client has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaidText {
    pub(crate) is_person: bool,
    /// Without white space around it, which clients change.
    pub(crate) text: String,
}

impl SaidText {
    pub(crate) fn new(is_person: bool, text: &str) -> Self {
        Self { is_person, text: text.trim().replace("\r\n", "\n") }
    }
}

/// What the person says now, and what was said before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChatHistory {
    pub(crate) before: Vec<SaidText>,
    /// As it was sent.
    pub(crate) message: String,
}

impl ChatHistory {
    /// Whether the conversation begins with the message.
    pub(crate) fn is_beginning(&self) -> bool {
        // Some clients show a greeting of their own first.
        !self.before.iter().any(|said| said.is_person)
    }

    /// The history with the message.
    pub(crate) fn with_message(&self) -> Vec<SaidText> {
        let mut all = self.before.clone();
        all.push(SaidText::new(true, &self.message));
        all
    }
}

impl ChatRequest {
    /// What was said, and what is said now.
    ///
    /// # Errors
    /// `Invalid` if the last message is not one of the person, or a message is not text.
    pub(crate) fn history(&self) -> Result<ChatHistory, Problem> {
        if self.messages.len() > MAX_MESSAGES {
            return Err(Problem::invalid(msg!("`messages` has more than {MAX_MESSAGES} messages")));
        }
        let mut said: Vec<(bool, String)> = Vec::new();
        for message in &self.messages {
            let is_person = match message.role.as_str() {
                "user" => true,
                "assistant" => false,
                // Instructions for a language model, and its calls of tools, are not part of the conversation.
                "system" | "developer" | "tool" | "function" => continue,
                other => return Err(Problem::invalid(msg!("`{other}` is not the role of a message"))),
            };
            let text = text_of(message.content.as_ref())?;
            match said.last_mut() {
                // Several messages in a row are one.
                Some((last, before)) if *last == is_person => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                _ => said.push((is_person, text)),
            }
        }
        match said.pop() {
            Some((true, message)) => {
                let before = said.iter().map(|(is_person, text)| SaidText::new(*is_person, text)).collect();
                Ok(ChatHistory { before, message })
            }
            _ => Err(Problem::invalid(msg!("the last message must have the role `user`"))),
        }
    }

    /// The id of the conversation, if the client sends one.
    ///
    /// # Errors
    /// `Invalid` if it is too long.
    pub(crate) fn conversation(&self, headers: &HeaderMap, header: &str) -> Result<Option<String>, Problem> {
        let in_header = headers.get(header).and_then(|value| value.to_str().ok()).and_then(sent);
        let in_metadata = || {
            let metadata = self.metadata.as_ref()?;
            CONVERSATION_KEYS.iter().find_map(|key| metadata.get(*key)?.as_str().and_then(sent))
        };
        let found = in_header.or_else(in_metadata);
        if found.is_some_and(|id| id.len() > MAX_CONVERSATION_BYTES) {
            return Err(Problem::invalid(msg!(
                "the id of the conversation is longer than {MAX_CONVERSATION_BYTES} bytes"
            )));
        }
        Ok(found.map(str::to_owned))
    }

    /// Whether the request is a task of the client, such as a title for the conversation, and no message of the person.
    pub(crate) fn is_task(&self, headers: &HeaderMap, header: &str, history: &ChatHistory) -> bool {
        let in_header = headers.get(header).and_then(|value| value.to_str().ok()).and_then(sent).is_some();
        let metadata = self.metadata.as_ref().and_then(|metadata| metadata.get(TASK_KEY)?.as_str());
        let in_metadata = metadata.and_then(sent).is_some();
        in_header || in_metadata || history.before.is_empty() && history.message.trim_start().starts_with(TASK_PROMPT)
    }
}

/// A value that was really sent: clients leave out a value, or send the name of its place.
fn sent(value: &str) -> Option<&str> {
    let value = value.trim();
    (!value.is_empty() && !value.starts_with("{{")).then_some(value)
}

fn text_of(content: Option<&Value>) -> Result<String, Problem> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let mut texts = Vec::with_capacity(parts.len());
            for part in parts {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                match part.get("text").and_then(Value::as_str) {
                    Some(text) if matches!(kind, "text" | "input_text" | "output_text") => texts.push(text),
                    _ => {
                        return Err(Problem::invalid(msg!(
                            "a message has a part of the type `{kind}`; scripts read text only"
                        )));
                    }
                }
            }
            Ok(texts.join("\n"))
        }
        Some(_) => Err(Problem::invalid("the `content` of a message must be a text or a list of parts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(messages: Value) -> ChatRequest {
        serde_json::from_value(json!({ "model": "m", "messages": messages })).unwrap()
    }

    #[test]
    fn a_history_has_what_people_said() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        let history = request(json!([
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": " Hi.\r\nWho? " },
            { "role": "tool", "content": "x" },
            { "role": "user", "content": parts },
            { "role": "user", "content": "c" },
        ]));
        let history = history.history().unwrap();
        assert_eq!(history.message, "a\nb\n\nc");
        assert_eq!(
            history.before,
            [SaidText::new(true, "hello"), SaidText { is_person: false, text: "Hi.\nWho?".into() }]
        );
        assert!(!history.is_beginning());
        let greeting =
            request(json!([{ "role": "assistant", "content": "Welcome" }, { "role": "user", "content": "x" }]));
        assert!(greeting.history().unwrap().is_beginning());
    }

    #[test]
    fn what_is_no_conversation_is_rejected() {
        for (messages, part) in [
            (json!([]), "the last message"),
            (json!([{ "role": "assistant", "content": "x" }]), "the last message"),
            (json!([{ "role": "robot", "content": "x" }]), "`robot`"),
            (json!([{ "role": "user", "content": 7 }]), "must be a text"),
            (json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }]), "`image_url`"),
        ] {
            let problem = request(messages).history().unwrap_err().detail();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn tasks_of_the_client_are_recognized() {
        let header = "x-task";
        let is_task = |value: Option<&str>, message: &str, metadata: Value| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("x-task", value.parse().unwrap());
            }
            let mut request = request(json!([{ "role": "user", "content": message }]));
            request.metadata = metadata.as_object().cloned();
            let history = request.history().unwrap();
            request.is_task(&headers, header, &history)
        };
        assert!(is_task(Some("title_generation"), "x", json!({})));
        assert!(is_task(None, "x", json!({ "task": "tags_generation" })));
        assert!(is_task(None, "### Task:\nGenerate a title", json!({})));
        assert!(!is_task(None, "x", json!({})));
        assert!(!is_task(Some(""), "x", json!({ "task": null })));
        assert!(!is_task(Some("{{TASK}}"), "my ### Task:", json!({})));
        assert!(!is_task(None, "x", json!({ "task": "" })) && !is_task(None, "x", json!({ "task": "{{TASK}}" })));
    }
}
