//! Rendering of prompts from templates and reading of replies, shared by turns and monitors.

use std::collections::BTreeMap;

use bcc_lang::message::stored::StoredMessage;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tracing::debug;

use crate::program::event::ModelCall;
use crate::program::program::Program;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::roles::PromptRole;
use bcc_lang::template::template::Template;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Task};
use bcc_llm::reply::bare_list::read_or_list;
use bcc_llm::reply::read::{Reply, UnreadableReply, read};
use bcc_llm::reply::shape::ReplyShape;

/// Renders a template to the messages of a prompt.
pub fn messages(template: &Template<'_>, names: &TemplateNames) -> Result<Vec<ChatMessage>, TemplateError> {
    let rendered = template.render(names)?;
    let role = |role: PromptRole| match role {
        PromptRole::System => Role::System,
        PromptRole::User => Role::User,
        PromptRole::Assistant => Role::Assistant,
    };
    Ok(rendered.into_iter().map(|message| ChatMessage { role: role(message.role), content: message.content }).collect())
}

/// Builds the request for these messages with the settings of the template.
pub fn request(template: &Template<'_>, messages: Vec<ChatMessage>, shape: &ReplyShape, task: Task) -> ModelRequest {
    let front = template.front();
    // A template that lists the outputs explains them, so the schema need not.
    let explains = ["output_list", "outputs"].iter().any(|name| template.mentions(name));
    let schema = Some(shape.request_schema(explains));
    let task = Task { reply_schema: Some(Arc::clone(shape.schema())), ..task };
    ModelRequest { messages, schema, temperature: front.temperature, max_tokens: front.max_tokens, task }
}

/// Adds `text` to the last user message; a prompt without one gets a new message.
pub(crate) fn append_to_last_user(messages: &mut Vec<ChatMessage>, text: &str) {
    match messages.iter_mut().rev().find(|message| message.role == Role::User) {
        Some(message) => {
            message.content.push_str("\n\n");
            message.content.push_str(text);
        }
        None => messages.push(ChatMessage { role: Role::User, content: text.to_owned() }),
    }
}

/// Parses a model's reply, and notes the cost and the parse result in `call`.
pub(crate) fn read_and_note(
    reply: &ModelReply,
    shape: &ReplyShape,
    repair: bool,
    list: Option<&str>,
    call: &mut ModelCall,
) -> Result<Reply, UnreadableReply> {
    call.tokens_in = reply.tokens_in;
    call.tokens_out = reply.tokens_out;
    call.attempts = reply.attempts;
    call.cut_off = reply.cut_off;
    call.finish_reason.clone_from(&reply.finish_reason);
    call.refused = reply.refused;
    if let Some(cost) = &reply.cost {
        call.cost = Some(cost.amount);
        call.currency = Some(cost.currency.clone());
    }
    if let Some(answered_by) = &reply.answered_by {
        call.model.clone_from(answered_by);
    }
    call.skipped_models.clone_from(&reply.skipped_models);
    let reading = match list {
        Some(field) => read_or_list(&reply.text, shape, repair, field),
        None => read(&reply.text, shape, repair),
    };
    match &reading {
        Ok(read) => {
            call.parse_retry_count = Some(read.parse_retry_count);
            call.coercions = json!(read.coercions);
            if !read.repairs.is_empty() {
                call.repairs = json!(read.repairs);
            }
        }
        Err(unreadable) => {
            call.parse_retry_count = Some(unreadable.retry_count());
            call.error = Some("the reply could not be read".into());
        }
    }
    reading
}

/// The `debug_info` of a call: `llm_prompt`, `llm_response`, `parse_error`, tokens and times.
pub fn debug_info(
    prompt: Vec<ChatMessage>,
    response: &str,
    reading: &Result<Reply, UnreadableReply>,
    call: &ModelCall,
) -> Map<String, Value> {
    let mut debug_info = Map::new();
    debug_info.insert("llm_prompt".into(), as_value(prompt));
    debug_info.insert("llm_response".into(), Value::from(response));
    debug_info.insert("tokens_in".into(), json!(call.tokens_in));
    debug_info.insert("tokens_out".into(), json!(call.tokens_out));
    debug_info.insert("ms".into(), json!(call.ms));
    if let Err(unreadable) = reading {
        let detail = json!({
            "retry_count": unreadable.retry_count(),
            "strategies": unreadable.strategies(),
            "errors": unreadable.failures.iter().map(|failure| &failure.error).collect::<Vec<_>>(),
            "final_error": unreadable.final_error(),
        });
        debug_info.insert("parse_error".into(), detail);
    }
    debug_info
}

/// The messages behind the texts about an unreadable reply in an outcome, by JSON pointer.
pub(crate) fn parse_messages(unreadable: &UnreadableReply) -> BTreeMap<String, StoredMessage> {
    let errors = unreadable.failures.iter().enumerate();
    let mut messages: BTreeMap<String, StoredMessage> = errors
        .map(|(number, failure)| {
            (format!("/debug_info/parse_error/errors/{number}"), StoredMessage(failure.error.clone()))
        })
        .collect();
    for pointer in ["/debug_info/parse_error/final_error", "/metadata/error_message"] {
        messages.insert(pointer.to_owned(), StoredMessage(unreadable.final_error()));
    }
    messages
}

/// Logs an unreadable reply at debug level, unless the script has sensitive variables: the reply may contain their values.
pub fn log_unreadable(raw: &str, program: &Program) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    if program.has_sensitive() {
        debug!(bytes = raw.len(), "the reply that could not be read is not logged: the script has sensitive variables");
    } else {
        debug!(raw, "the reply that could not be read");
    }
}

fn as_value(messages: Vec<ChatMessage>) -> Value {
    let role = |role: Role| match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    messages.into_iter().map(|message| json!({ "role": role(message.role), "content": message.content })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, content: &str) -> ChatMessage {
        ChatMessage { role, content: content.to_owned() }
    }

    #[test]
    fn text_is_appended_to_the_last_user_message_or_added_as_a_new_one() {
        let mut prompt = vec![message(Role::User, "a"), message(Role::User, "b"), message(Role::Assistant, "c")];
        append_to_last_user(&mut prompt, "x");
        assert_eq!(prompt[1].content, "b\n\nx");
        let mut prompt = vec![message(Role::System, "rules")];
        append_to_last_user(&mut prompt, "x");
        assert_eq!(prompt[1], message(Role::User, "x"));
    }
}
