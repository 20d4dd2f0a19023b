//! What a kept session sent to models for its actions, in the order of its journal, with all that decided how it went on: the
//! answers of the person, the monitors' advice that a turn used, the plans that changed a topic.

use serde_json::Value;

use crate::archive::contract::Archive;
use crate::engine::error::EngineError;
use crate::model::message::{Message, Role};

/// How many rows of a journal are read at a time: one may hold a prompt and a reply of megabytes.
const PAGE: usize = 64;

/// One call of a model.
#[derive(Clone, Debug, Default)]
pub struct SentCall {
    /// When it was committed.
    pub at: String,
    /// When the event before its turn was.
    pub before: String,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// What was sent, as it is kept: masked.
    pub prompt: Option<Vec<Message>>,
    /// What came, likewise; none when nothing did.
    pub reply: Option<String>,
    /// Whether the reply was mended to be read.
    pub repaired: bool,
    /// Whether the reply was cut off.
    pub cut_off: bool,
}

/// A turn that asked a model.
#[derive(Clone, Debug, Default)]
pub struct SentTurn {
    /// The instance of the action.
    pub path: String,
    /// Its id.
    pub action: String,
    /// The round of the call.
    pub round: u32,
    /// The calls: the first one, and those that asked again.
    pub calls: Vec<SentCall>,
    /// The analysis whose advice was used.
    pub advice: Option<Value>,
}

/// What decided how a session went on.
#[derive(Clone, Debug)]
pub enum Step {
    /// The person said something.
    Answer(String),
    /// A model was asked.
    Turn(SentTurn),
    /// A plan changed the rest of a topic: its event.
    Plan(Value),
}

/// The steps of a session.
///
/// # Errors
/// When its journal cannot be read.
pub async fn steps(archive: &dyn Archive, id: &str) -> Result<Vec<Step>, EngineError> {
    let mut steps: Vec<Step> = Vec::new();
    let mut before = String::new();
    let mut after = 0;
    loop {
        let rows = archive.journal(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(steps) };
        after = last.seq;
        for row in &rows {
            if matches!(row.kind.as_str(), "message" | "model_call" | "outcome" | "monitor_feedback" | "orchestrated") {
                let event = serde_json::from_str(&row.body)
                    .map_err(|error| EngineError::failed(format!("a stored event cannot be read: {error}")))?;
                add(&mut steps, &event, &before);
            }
            before.clone_from(&row.at);
        }
    }
}

fn add(steps: &mut Vec<Step>, event: &Value, before: &str) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| event.get(name) == Some(&Value::Bool(true));
    match text("/type") {
        "message" if text("/role") == "user" => steps.push(Step::Answer(text("/text").to_owned())),
        "model_call" if text("/purpose") == "action" => call(steps, event, before),
        "outcome" => {
            let path = text("/location/path");
            if let Some(call) = last(steps).filter(|turn| turn.path == path).and_then(|turn| turn.calls.last_mut())
                && call.prompt.is_none()
            {
                (call.prompt, call.reply) = debug_info(event);
            }
        }
        "monitor_feedback" if flag("used") => {
            if let Some(turn) = last(steps) {
                turn.advice = event.get("analysis").cloned().map(
                    |analysis| serde_json::json!({ "action_type": event.get("action_type"), "analysis": analysis }),
                );
            }
        }
        "orchestrated" if flag("accepted") => steps.push(Step::Plan(event.clone())),
        _ => {}
    }
}

fn call(steps: &mut Vec<Step>, event: &Value, before: &str) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let (prompt, reply) = debug_info(event);
    let again = number("/reask") > 0;
    // Without any reply the session stopped, and the turn was taken again later.
    if !again && event.get("parse_retry_count").is_none_or(Value::is_null) {
        return;
    }
    let call = SentCall {
        at: text("/at"),
        before: before.to_owned(),
        ms: number("/ms"),
        prompt,
        reply,
        repaired: number("/parse_retry_count") == 4,
        cut_off: event.get("cut_off") == Some(&Value::Bool(true)),
    };
    match last(steps).filter(|_| again) {
        Some(turn) => turn.calls.push(call),
        None => steps.push(Step::Turn(SentTurn {
            path: text("/location/path"),
            action: text("/location/action_id"),
            round: u32::try_from(number("/location/round")).unwrap_or(1),
            calls: vec![call],
            advice: None,
        })),
    }
}

fn last(steps: &mut [Step]) -> Option<&mut SentTurn> {
    steps.iter_mut().rev().find_map(|step| if let Step::Turn(turn) = step { Some(turn) } else { None })
}

fn debug_info(event: &Value) -> (Option<Vec<Message>>, Option<String>) {
    let prompt = event.pointer("/debug_info/llm_prompt").and_then(Value::as_array).map(|messages| {
        let one = |message: &Value| {
            let role = serde_json::from_value::<Role>(message.get("role").cloned().unwrap_or_default()).ok()?;
            Some(Message { role, content: message.get("content")?.as_str()?.to_owned() })
        };
        messages.iter().filter_map(one).collect()
    });
    (prompt, event.pointer("/debug_info/llm_response").and_then(Value::as_str).map(str::to_owned))
}
