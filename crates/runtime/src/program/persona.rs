//! The prompt of a simulated person (docs/tests.md): it shows the persona and the talk, and nothing else of the session.

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

/// The names that the template gets beyond the engine's names. Variables are not among them: a person does not know what was
/// noted about them.
pub const PERSONA_NAMES: [&str; 4] = ["persona", "goal", "chat", "chat_history"];

/// What a prompt of a persona asks for, with what its template wants of the model.
#[derive(Debug)]
pub struct PersonaPrompt {
    pub messages: Vec<ChatMessage>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub model: Option<String>,
}

/// The prompt that asks a persona for its next words. `time` is what the clock shows.
pub fn prompt(
    program: &Program,
    (persona, goal): (&str, Option<&str>),
    talk: &RecentTranscript,
    time: &str,
) -> Result<PersonaPrompt, TemplateError> {
    let template = program.templates.get(PERSONA, VERSION)?;
    let mut names = TemplateNames::new(Scopes::default());
    // The goals of the script are for the one who asks.
    for name in ENGINE_NAMES {
        names.give_text(name, "");
    }
    names.give_text("time", time);
    names.give_text("who", program.who.as_str());
    names.give_text("user", program.user.as_str());
    names.give_text("last_user_message", talk.last_user_message().unwrap_or_default());
    names.give("current_round", Value::from(1));
    names.give("max_rounds", Value::from(1));
    names.give_text("persona", persona);
    names.give_text("goal", goal.unwrap_or_default());
    let chat = talk.as_text(program.history_chars, &program.who, &program.user);
    names.give_text("chat", chat.as_str());
    names.give_text("chat_history", chat);
    let front = template.front();
    Ok(PersonaPrompt {
        messages: messages(&template, &names)?,
        temperature: front.temperature,
        max_tokens: front.max_tokens,
        model: front.model.clone(),
    })
}
