//! The commands of the terminal: what the author wants to know in the middle of a conversation.

use std::fmt::Write;

use serde_json::Value;

use crate::archive::contract::Archive;
use crate::cli::terminal::{plain, quiet};
use crate::engine::error::EngineError;
use crate::run::session::Session;
use crate::value::mask::MASK;

const HELP: &str = "\
/vars    the variables, and who set them
/where   phase, topic, action and round
/why     what came of the last turn: exit reason, metrics, what was bent, how the reply was read
/why raw the same with the raw reply
/prompt  what was sent to the model last
/quit    save and leave (so does Ctrl-D; Ctrl-C too)
//…      say a line that begins with a slash; a line that ends in \\ goes on in the next";

/// Carries out a command.
///
/// # Errors
/// When the store cannot be read.
pub async fn command(words: &str, session: &Session, archive: &dyn Archive) -> Result<(), EngineError> {
    let text = match words {
        "help" | "h" | "?" => HELP.to_owned(),
        "vars" => variables(session),
        "where" => place(session),
        "why" => {
            why(last(archive, &session.id, "outcome").await?, last(archive, &session.id, "model_call").await?, false)
        }
        "why raw" => {
            why(last(archive, &session.id, "outcome").await?, last(archive, &session.id, "model_call").await?, true)
        }
        "prompt" => prompt(last(archive, &session.id, "outcome").await?),
        other => format!("there is no command /{other}; /help lists them, and //{other} says it to the AI"),
    };
    quiet(&plain(&text));
    Ok(())
}

async fn last(archive: &dyn Archive, id: &str, kind: &str) -> Result<Value, EngineError> {
    let Some(row) = archive.last_of(id, kind).await? else { return Ok(Value::Null) };
    serde_json::from_str(&row.body)
        .map_err(|error| EngineError::failed(format!("a stored event cannot be read: {error}")))
}

fn variables(session: &Session) -> String {
    let mut text = String::new();
    for layer in session.scopes().layers() {
        for (name, stored) in layer.values() {
            let sensitive = layer.declaration(name).is_some_and(|declaration| declaration.sensitive);
            let value = if sensitive { MASK.to_owned() } else { stored.value.to_string() };
            let round = stored.round.map(|round| format!(", round {round}")).unwrap_or_default();
            let _ = writeln!(text, "{:7} {name} = {value}   ({}{round})", layer.scope, stored.source);
        }
    }
    if text.is_empty() { "no variable has a value yet".into() } else { text.trim_end().to_owned() }
}

fn place(session: &Session) -> String {
    let place = session.place();
    let part = |part: Option<String>| part.unwrap_or_else(|| "–".into());
    let round = place.round.map(|round| format!(", round {round}")).unwrap_or_default();
    format!(
        "{} › {} › {}{round}   (path {}, session {})",
        part(place.phase_id),
        part(place.topic_id),
        part(place.action_id),
        place.path,
        session.id
    )
}

fn why(outcome: Value, call: Value, raw: bool) -> String {
    if outcome.is_null() {
        return "nothing has come of anything yet".into();
    }
    let text = |pointer: &str| match outcome.pointer(pointer) {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut lines = vec![
        format!(
            "action       {} (round {} of {})",
            text("/location/action_id"),
            text("/metadata/current_round"),
            text("/metadata/max_rounds")
        ),
        format!("completed    {}, exit reason {}", text("/completed"), text("/exit_reason")),
        format!("suggestion   {}", text("/progress_suggestion")),
    ];
    for (name, metric) in outcome.pointer("/metrics").and_then(Value::as_object).into_iter().flatten() {
        lines.push(format!("metric       {name}: {}", metric.as_str().unwrap_or_default()));
    }
    for (name, value) in outcome.pointer("/extracted_variables").and_then(Value::as_object).into_iter().flatten() {
        lines.push(format!("extracted    {name} = {value}"));
    }
    if outcome.pointer("/metadata/parse_retry_count").is_some() {
        lines.push(format!("reply read   by strategy {}", text("/metadata/parse_retry_count")));
    }
    for bend in call.pointer("/bent").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| bend.get(name).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!(
            "bent         {}: {}, expected {}, found {}",
            field("path"),
            field("bending"),
            field("expected"),
            field("found")
        ));
    }
    if let Some(error) = outcome.pointer("/debug_info/parse_error") {
        let list = |name: &str, join: &str| {
            let items = error.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).collect::<Vec<_>>().join(join)
        };
        lines.push("the model's reply could not be read".to_owned());
        lines.push(format!("  tried        {}", list("strategies", " → ")));
        lines.push(format!("  errors       {}", list("errors", "; ")));
        lines.push(format!("  final error  {}", text("/debug_info/parse_error/final_error")));
        if !raw {
            lines.push("  /why raw shows what the model wrote".to_owned());
        }
    }
    if raw {
        lines.push(format!("raw reply:\n{}", text("/debug_info/llm_response")));
    }
    lines.join("\n")
}

fn prompt(outcome: Value) -> String {
    let messages = outcome.pointer("/debug_info/llm_prompt").and_then(Value::as_array);
    let Some(messages) = messages else { return "the last turn asked no model".into() };
    let shown = messages.iter().map(|message| {
        let field = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("[{}]\n{}", field("role"), field("content"))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}
