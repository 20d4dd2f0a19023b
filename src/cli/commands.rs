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
/where   phase, topic, action and round; what was used and what is left of the budget
/why     what came of the last turn: exit reason, metrics, what was bent, how the reply was read
/why raw the same with the raw reply
/prompt  what was sent to the model last
/quit    save and leave (so does Ctrl-D; Ctrl-C too)
//…      say a line that begins with a slash; a line that ends in \\ goes on in the next";

/// How many events back `/why` looks: many more than one turn makes.
const LOOK_BACK: u64 = 64;

/// Carries out a command.
///
/// # Errors
/// When the store cannot be read.
pub async fn command(words: &str, session: &Session, archive: &dyn Archive) -> Result<(), EngineError> {
    let text = match words {
        "help" | "h" | "?" => HELP.to_owned(),
        "vars" => variables(session),
        "where" => place(session),
        "why" => why(session, archive, false).await?,
        "why raw" => why(session, archive, true).await?,
        "prompt" => prompt(last(archive, &session.id, "outcome").await?),
        other => format!("there is no command /{other}; /help lists them, and //{other} says it to the AI"),
    };
    quiet(&plain(&text));
    Ok(())
}

async fn last(archive: &dyn Archive, id: &str, kind: &str) -> Result<Value, EngineError> {
    let Some(row) = archive.last_of(id, kind).await? else { return Ok(Value::Null) };
    parse(&row.body)
}

fn parse(line: &str) -> Result<Value, EngineError> {
    serde_json::from_str(line).map_err(|error| EngineError::failed(format!("a stored event cannot be read: {error}")))
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
        "{} › {} › {}{round}   (path {}, session {})\n{}",
        part(place.phase_id),
        part(place.topic_id),
        part(place.action_id),
        place.path,
        session.id,
        budget(session)
    )
}

fn budget(session: &Session) -> String {
    let told = session.spent().map(|spent| match spent.left() {
        Some(left) => format!("{} ({} left)", spent.told(), spent.resource.number(left)),
        None => spent.told(),
    });
    format!("used: {}", told.join(", "))
}

/// What came of the turns since the person's last answer: one answer may end an action and open the next.
async fn why(session: &Session, archive: &dyn Archive, raw: bool) -> Result<String, EngineError> {
    let since = session.last_seq().saturating_sub(LOOK_BACK);
    let events = async |kind: &str| -> Result<Vec<Value>, EngineError> {
        let rows = archive.journal_of(&session.id, kind, since, usize::from(u8::MAX)).await?;
        rows.iter().map(|row| parse(&row.body)).collect()
    };
    let seq = |event: &Value| event.get("seq").and_then(Value::as_u64).unwrap_or(0);
    let answered = events("message").await?;
    let answered =
        answered.iter().rev().find(|event| event.get("role").and_then(Value::as_str) == Some("user")).map(seq);
    let mut outcomes = events("outcome").await?;
    let last = outcomes.last().cloned();
    outcomes.retain(|outcome| Some(seq(outcome)) > answered);
    let calls = events("model_call").await?;
    let shown = if outcomes.is_empty() { last.into_iter().collect() } else { outcomes };
    let texts: Vec<String> = shown
        .iter()
        .map(|outcome| {
            // Only a turn that read a reply has a call of its own, the last one before its outcome.
            let read = outcome.pointer("/metadata/parse_retry_count").is_some();
            let call = calls.iter().rev().find(|call| read && seq(call) < seq(outcome));
            explained(outcome, call.unwrap_or(&Value::Null), raw)
        })
        .collect();
    Ok(if texts.is_empty() { "nothing has come of anything yet".into() } else { texts.join("\n\n") })
}

fn explained(outcome: &Value, call: &Value, raw: bool) -> String {
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
