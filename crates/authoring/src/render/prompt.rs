//! A prompt that was made to be looked at, with what is to be known of it.

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
    /// The file of the template, as people are shown it.
    pub file: String,
    /// The file's own name: `ai_ask_v1.md`.
    pub template: String,
    /// The action that asks, and its kind; none for a template alone.
    pub action: Option<(String, String)>,
    pub round: u32,
    /// The answer that the call judges; none for an opening.
    pub answer: Option<String>,
    /// The model that the template or the script names; none for the session's.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    /// The most tokens of the reply, of the front matter.
    pub max_tokens: Option<u32>,
    /// The name of the reply schema; empty for a part of other templates.
    pub schema: String,
    pub history: HistoryMode,
    pub messages: Vec<ChatMessage>,
    /// Names that nobody knows.
    pub unknown: Vec<MissingName>,
    /// Variables that have no value.
    pub empty: Vec<MissingName>,
    pub notes: Vec<String>,
}

impl Prompt {
    /// A prompt of the template `loaded` as it was heard, masked.
    pub fn heard(heard: CapturedPrompt, loaded: &LoadedTemplate, masker: &Masker) -> Self {
        let CapturedPrompt { model, request: ModelRequest { messages, temperature, max_tokens, task, .. } } = heard;
        let messages = messages.into_iter().map(|said| masked(said, masker)).collect();
        let round = task.round;
        let action = Some((task.action_id, task.kind));
        let answer = task.answer.map(|answer| masker.text(&answer));
        Self { model, temperature, max_tokens, messages, round, action, answer, ..Self::of(loaded) }
    }

    /// What the file of a template says of its prompts, without any message.
    pub fn of(loaded: &LoadedTemplate) -> Self {
        let front = &loaded.cut().front;
        let asked = front.output_schema.as_deref().map(|name| name.strip_suffix(".json").unwrap_or(name));
        // A part of others is answered by nothing of its own.
        let kind = name_and_version(loaded.name()).map_or("", |(kind, _)| kind);
        Self {
            file: loaded.source().name().to_owned(),
            template: loaded.name().to_owned(),
            round: 1,
            model: front.model.clone(),
            temperature: front.temperature,
            max_tokens: front.max_tokens,
            schema: asked.unwrap_or(kind).to_owned(),
            history: front.history,
            ..Self::default()
        }
    }

    pub fn tokens(&self) -> u64 {
        estimate_prompt(&self.messages)
    }

    pub fn as_value(&self) -> Value {
        let lacks = |lacks: &[MissingName]| Value::from_iter(lacks.iter().map(MissingName::as_value));
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
            "unknown": lacks(&self.unknown),
            "empty": lacks(&self.empty),
            "notes": self.notes,
        })
    }
}

/// Messages for programs, each with an estimate of its tokens.
pub fn as_value(messages: &[ChatMessage]) -> Value {
    let one =
        |message: &ChatMessage| json!({ "role": message.role, "content": message.content, "tokens": tokens(message) });
    messages.iter().map(one).collect()
}

pub fn tokens(message: &ChatMessage) -> u64 {
    estimate_prompt(std::slice::from_ref(message))
}

/// Who says a message, as a template writes it.
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
