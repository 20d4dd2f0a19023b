//! The prompt of a simulated person (docs/tests.md): it contains the persona and the conversation, and nothing else of the session.

use serde_json::Value;

use crate::program::messages::messages;
use crate::program::program::Program;
use crate::program::transcript::RecentTranscript;
use crate::program::turn::ENGINE_NAMES;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::message::ChatMessage;

pub const PERSONA: &str = "persona";

/// The version of the template: `persona_v1.md`.
pub const VERSION: u32 = 1;

/// The names that the template receives beyond the engine's names. Variables are not included: a person does not know what was
/// recorded about them.
pub const PERSONA_NAMES: [&str; 4] = ["persona", "goal", "chat", "chat_history"];

/// A rendered persona prompt, with the model settings of its template.
#[derive(Debug)]
pub struct PersonaPrompt {
    pub messages: Vec<ChatMessage>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub model: Option<String>,
}

/// Builds the prompt for the persona's next message. `time` is the current time.
pub fn prompt(
    program: &Program,
    (persona, goal): (&str, Option<&str>),
    transcript: &RecentTranscript,
    time: &str,
) -> Result<PersonaPrompt, TemplateError> {
    let template = program.templates.get(PERSONA, VERSION)?;
    let mut names = TemplateNames::new(Scopes::default());
    // The goals of the script are only for the interviewer.
    for name in ENGINE_NAMES {
        names.set_text(name, "");
    }
    names.set_text("time", time);
    names.set_text("who", program.who.as_str());
    names.set_text("user", program.user.as_str());
    names.set_text("last_user_message", transcript.last_user_message().unwrap_or_default());
    names.set("current_round", Value::from(1));
    names.set("max_rounds", Value::from(1));
    names.set_text("persona", persona);
    names.set_text("goal", goal.unwrap_or_default());
    let chat = transcript.as_text(program.history_chars, &program.who, &program.user);
    names.set_text("chat", chat.as_str());
    names.set_text("chat_history", chat);
    let front = template.front();
    Ok(PersonaPrompt {
        messages: messages(&template, &names)?,
        temperature: front.temperature,
        max_tokens: front.max_tokens,
        model: front.model.clone(),
    })
}
