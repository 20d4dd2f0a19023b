//! Builds an outcome from a reply: metrics, suggestion and exit reason. Also builds the outcome of an unreadable reply.

use crate::program::messages::parse_messages;
use serde_json::{Map, Value, json};

use crate::program::exchange::Exchange;
use crate::program::outcome::{ExitReason, Outcome, ProgressSuggestion};
use crate::program::output::OutputVariable;
use crate::program::turn::Turn;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::exact::ExactValues;
use bcc_llm::reply::exit::is_yes;
use bcc_llm::reply::read::Reply;
use bcc_llm::reply::shape::ReplyShape;

/// The evaluation of an action in a reply.
pub struct Judged {
    pub suggestion: ProgressSuggestion,
    /// The metrics that the model reports about the action.
    pub metrics: Map<String, Value>,
}

/// Takes the metrics and the suggestion out of the reply; those of an unreadable reply if there is none.
pub fn judged(exchange: &mut Exchange, shape: &ReplyShape, language: PromptLanguage) -> Judged {
    match &mut exchange.reading {
        Ok(reply) => Judged {
            suggestion: reply
                .object
                .get("progress_suggestion")
                .and_then(Value::as_str)
                .map(ProgressSuggestion::parse)
                .unwrap_or_default(),
            metrics: take_object(reply, "metrics"),
        },
        Err(_) => {
            Judged { suggestion: ProgressSuggestion::ContinueNeeded, metrics: unreadable_metrics(shape, language) }
        }
    }
}

/// Takes the object `name` out of the reply; empty if it is not an object.
fn take_object(reply: &mut Reply, name: &str) -> Map<String, Value> {
    reply.object.get_mut(name).and_then(Value::as_object_mut).map(std::mem::take).unwrap_or_default()
}

fn unreadable_metrics(shape: &ReplyShape, language: PromptLanguage) -> Map<String, Value> {
    let metrics = shape.schema().pointer("/properties/metrics/properties").and_then(Value::as_object);
    metrics.into_iter().flatten().map(|(name, _)| (name.clone(), Value::from(language.not_assessed()))).collect()
}

/// Why the action ended, or what prevents it from going on: the first reason that applies (docs/routes.md).
pub fn exit_reason(exit: bool, last_round: bool, suggestion: ProgressSuggestion) -> Option<ExitReason> {
    if exit {
        Some(ExitReason::ExitCriteriaMet)
    } else if last_round {
        Some(ExitReason::MaxRoundsReached)
    } else {
        match suggestion {
            ProgressSuggestion::Blocked => Some(ExitReason::UserBlocked),
            ProgressSuggestion::OffTopic => Some(ExitReason::OffTopic),
            ProgressSuggestion::ContinueNeeded | ProgressSuggestion::Completed => None,
        }
    }
}

/// The `metadata` of an outcome: that of the reply, overwritten by that of the engine.
pub fn metadata(
    mut exchange: Option<&mut Exchange>,
    rounds: (u32, u32),
    reason: Option<ExitReason>,
) -> Map<String, Value> {
    let mut metadata = match exchange.as_deref_mut() {
        Some(Exchange { reading: Ok(reply), .. }) => take_object(reply, "metadata"),
        _ => Map::new(),
    };
    metadata.insert("current_round".into(), json!(rounds.0));
    metadata.insert("max_rounds".into(), json!(rounds.1));
    metadata.insert("exit_reason".into(), json!(reason));
    let Some(exchange) = exchange else { return metadata };
    match &exchange.reading {
        Ok(reply) => {
            metadata.insert("parse_retry_count".into(), json!(reply.parse_retry_count));
            metadata.insert("parse_error".into(), json!(false));
            if let Some(brief) = reply.object.get("BRIEF") {
                metadata.insert("brief".into(), brief.clone());
            }
        }
        Err(unreadable) => {
            metadata.insert("parse_retry_count".into(), json!(unreadable.retry_count()));
            metadata.insert("parse_error".into(), json!(true));
            metadata.insert("error_message".into(), json!(unreadable.final_error()));
            metadata.insert("raw_response".into(), json!(exchange.raw));
        }
    }
    if let Some(reason) = &exchange.held_back {
        metadata.insert("held_back".into(), json!(reason));
    }
    // A later reply does not take back what an earlier one reported, so that triggers see it.
    if exchange.in_crisis {
        metadata.insert("crisis_signal".into(), json!(true));
    }
    metadata
}

/// The outcome of a turn that asked a model.
pub fn outcome(
    mut exchange: Exchange,
    rounds: (u32, u32),
    reason: Option<ExitReason>,
    completed: bool,
    judged: Option<Judged>,
    extracted: ExactValues,
) -> Outcome {
    let metadata = metadata(Some(&mut exchange), rounds, reason);
    let ai_message = content(&exchange).map(str::to_owned);
    let messages = exchange.reading.as_ref().err().map(parse_messages).unwrap_or_default();
    let (progress_suggestion, metrics) = judged.map(|judged| (judged.suggestion, judged.metrics)).unwrap_or_default();
    Outcome {
        success: true,
        completed,
        ai_message,
        extracted_variables: extracted,
        metrics,
        progress_suggestion,
        exit_reason: reason,
        metadata,
        debug_info: exchange.debug_info,
        messages,
    }
}

/// The message of a reply, if the reply could be read and the message may be sent.
pub fn content(exchange: &Exchange) -> Option<&str> {
    if exchange.held_back.is_some() {
        return None;
    }
    exchange.reading.as_ref().ok()?.object.get("content")?.as_str()
}

/// Warns about the fields of a reply to an opening, which has no answer to judge. `done`: whether the action ends with it.
pub fn warn_ignored_fields(turn: &Turn<'_>, outputs: &[OutputVariable], exchange: &Exchange, done: bool) {
    let Ok(reply) = &exchange.reading else { return };
    let mut ignored: Vec<&str> = Vec::new();
    if !done && reply.object.get("EXIT").is_some_and(is_yes) {
        ignored.push("EXIT");
    }
    let outputs = outputs.iter().map(|output| output.get.as_str());
    ignored.extend(outputs.filter(|name| reply.object.get(*name).is_some_and(|value| !value.is_null())));
    let suggestion = reply.object.get("progress_suggestion").and_then(Value::as_str);
    if !done && suggestion.is_some_and(|suggestion| suggestion != "continue_needed") {
        ignored.push("progress_suggestion");
    }
    if !ignored.is_empty() {
        let message = msg!("an opening turn has no answer to judge: {} in its reply ignored", Message::names(&ignored));
        turn.warn("opening-ignored", message, None);
    }
}
