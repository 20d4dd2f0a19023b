//! A prompt that was rendered for inspection, with its metadata.

use bcc_lang::message::message::Message;
use serde_json::{Value, json};

use crate::render::capturing::CapturedPrompt;
use crate::render::missing_names::MissingName;
use bcc_check::templates::unused::name_and_version;
use bcc_lang::template::front_matter::HistoryMode;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::request::ModelRequest;
use bcc_llm::model::tokens::estimate_prompt;

#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The displayed path of the template file.
    pub file: String,
    /// The file name: `ai_ask_v1.md`.
    pub template: String,
    /// The id and the type of the action; `None` for a template alone.
    pub action: Option<(String, String)>,
    pub round: u32,
    /// The answer that the call evaluates; `None` for an opening.
    pub answer: Option<String>,
    /// The model that the template or the script specifies; `None` for that of the session.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    /// The maximum number of reply tokens, from the front matter.
    pub max_tokens: Option<u32>,
    /// The name of the reply schema; empty for a template that is only included by others.
    pub schema: String,
    pub history: HistoryMode,
    pub messages: Vec<ChatMessage>,
    /// Unknown names.
    pub unknown: Vec<MissingName>,
    /// Variables without a value.
    pub empty: Vec<MissingName>,
    pub notes: Vec<Message>,
    /// The operations that are null or failed, which are rendered as nothing.
    pub warnings: Vec<Message>,
}

impl Prompt {
    /// A captured prompt of the template `loaded`, masked.
    pub(crate) fn from_captured(captured: CapturedPrompt, loaded: &LoadedTemplate, masker: &Masker) -> Self {
        let CapturedPrompt { model, request: ModelRequest { messages, temperature, max_tokens, task, .. } } = captured;
        let messages = messages.into_iter().map(|message| masked(message, masker)).collect();
        let round = task.round;
        let action = Some((task.action_id, task.kind));
        let answer = task.answer.map(|answer| masker.text(&answer));
        Self { model, temperature, max_tokens, messages, round, action, answer, ..Self::of(loaded) }
    }

    /// The metadata of a template, without messages.
    pub fn of(loaded: &LoadedTemplate) -> Self {
        let front = &loaded.split().front;
        let schema_name = front.output_schema.as_deref().map(|name| name.strip_suffix(".json").unwrap_or(name));
        // A template that is only included by others has no reply schema.
        let kind = name_and_version(loaded.name()).map_or("", |(kind, _)| kind);
        Self {
            file: loaded.source().name().to_owned(),
            template: loaded.name().to_owned(),
            round: 1,
            model: front.model.clone(),
            temperature: front.temperature,
            max_tokens: front.max_tokens,
            schema: schema_name.unwrap_or(kind).to_owned(),
            history: front.history,
            ..Self::default()
        }
    }

    pub fn tokens(&self) -> u64 {
        estimate_prompt(&self.messages)
    }

    pub fn as_value(&self) -> Value {
        let names = |names: &[MissingName]| Value::from_iter(names.iter().map(MissingName::as_value));
        json!({
            "template": self.template,
            "file": self.file,
            "action_id": self.action.as_ref().map(|(id, _)| id),
            "action_type": self.action.as_ref().map(|(_, kind)| kind),
            "round": self.round,
            "answer": self.answer,
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "schema": self.schema,
            "history": self.history,
            "messages": as_value(&self.messages),
            "tokens": self.tokens(),
            "unknown": names(&self.unknown),
            "empty": names(&self.empty),
            "notes": self.notes,
            "warnings": self.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Messages as JSON, each with an estimate of its tokens.
pub fn as_value(messages: &[ChatMessage]) -> Value {
    let one =
        |message: &ChatMessage| json!({ "role": message.role, "content": message.content, "tokens": tokens(message) });
    messages.iter().map(one).collect()
}

pub fn tokens(message: &ChatMessage) -> u64 {
    estimate_prompt(std::slice::from_ref(message))
}

/// The role of a message, as templates write it.
pub const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

pub fn masked(message: ChatMessage, masker: &Masker) -> ChatMessage {
    if masker.is_empty() { message } else { ChatMessage { content: masker.text(&message.content), ..message } }
}
