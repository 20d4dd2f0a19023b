//! The contents of a snapshot. They do not depend on when, where or how often a test is run: no times, ids of sessions,
//! messages or calls, durations, tokens or prices. Sensitive values are masked, also in the transcript.

use std::collections::BTreeMap;

use bcc_lang::message::msg;
use serde_json::{Value, json};

use bcc_engine::error::EngineError;
use bcc_lang::script::test::snapshot::SnapshotSetting;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::mask::{MASK, Masker};
use bcc_runtime::run::session::Session;

/// Fields of events that depend on the time, the process or the cost.
const VOLATILE_FIELDS: [&str; 23] = [
    "seq",
    "at",
    "session_id",
    "timestamp",
    "message_id",
    "call_id",
    "answer_id",
    "feedback",
    "ms",
    "first_token_ms",
    "active_ms",
    "tokens_in",
    "tokens_out",
    "cost",
    "currency",
    "model",
    "attempts",
    "answered_by",
    "passed_over",
    "debug_info",
    "plan_ms",
    "location",
    "summary",
];

/// Fields whose values are defined by the engine: they are not masked if they equal a sensitive value by chance.
const ENGINE_FIELDS: [&str; 8] =
    ["type", "at", "action_type", "exit_reason", "progress_suggestion", "reason", "scope", "code"];

pub struct SnapshotContent<'s> {
    pub events: &'s [ExactValue],
    /// The variables at the end, as returned by [`variables`].
    pub variables: &'s ExactValue,
    pub masker: &'s Masker,
}

pub fn content(settings: &[SnapshotSetting], data: &SnapshotContent<'_>) -> Result<String, EngineError> {
    let part = |setting: &SnapshotSetting| match setting {
        SnapshotSetting::Transcript => transcript(data.events).into(),
        SnapshotSetting::Variables => data.variables.clone(),
        SnapshotSetting::Outcomes => of_type(data.events, "outcome").map(outcome).collect(),
        SnapshotSetting::Events => data.events.iter().map(event).collect(),
        SnapshotSetting::Prompts => {
            of_type(data.events, "outcome").filter_map(|event| prompt(event)).collect::<Value>().into()
        }
    };
    let mut snapshot: ExactValue = settings.iter().map(|setting| (setting.name().to_owned(), part(setting))).collect();
    data.masker.exact(&mut snapshot, &ENGINE_FIELDS);
    yaml(&snapshot).map_err(|error| EngineError::failed(msg!("a snapshot cannot be written: {error}")))
}

/// A value as YAML, with the digits of its numbers.
fn yaml(value: &ExactValue) -> Result<String, serde_yaml::Error> {
    let text = serde_yaml::to_string(&**value)?;
    let Some(digits) = value.digits() else { return Ok(text) };
    // YAML is written from numbers of the machine. A word that occurs nowhere stands for each number that is none of these.
    let mut word = "number".to_owned();
    while text.contains(&word) {
        word.push('_');
    }
    let (mut marked, mut numbers) = (Value::clone(value), vec![]);
    mark_numbers(&mut marked, digits, &word, &mut numbers);
    let text = serde_yaml::to_string(&marked)?;
    let mut parts = text.split(&word);
    let mut exact = parts.next().unwrap_or_default().to_owned();
    for (part, number) in parts.zip(numbers) {
        exact.push_str(number);
        exact.push_str(part);
    }
    Ok(exact)
}

/// Replaces each number that has digits by a word, and collects the digits.
fn mark_numbers<'d>(value: &mut Value, digits: &'d Digits, word: &str, numbers: &mut Vec<&'d str>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                digits.item(index).into_iter().for_each(|own| mark_numbers(item, own, word, numbers));
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                digits.field(name).into_iter().for_each(|own| mark_numbers(field, own, word, numbers));
            }
        }
        number => {
            if let Some(written) = digits.number() {
                numbers.push(written);
                *number = Value::from(word);
            }
        }
    }
}

/// The variables of a session by scope, with sensitive values masked.
pub fn variables(session: &Session) -> ExactValue {
    let mut scopes: BTreeMap<&str, BTreeMap<&str, ExactValue>> = BTreeMap::new();
    for layer in session.all_scopes().flat_map(|scopes| scopes.layers()) {
        for (name, stored) in layer.values().filter(|(_, stored)| !stored.value.is_null()) {
            let value = if layer.is_sensitive(name) { Value::from(MASK).into() } else { stored.value.clone() };
            // The innermost variable hides the others.
            scopes.entry(layer.scope.name()).or_default().entry(name).or_insert(value);
        }
    }
    let named = |values: BTreeMap<&str, ExactValue>| -> ExactValue {
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let mut scopes: ExactValue = scopes.into_iter().map(|(scope, values)| (scope.to_owned(), named(values))).collect();
    scopes.change(Value::sort_all_objects);
    scopes
}

fn of_type<'e>(events: &'e [ExactValue], kind: &'static str) -> impl Iterator<Item = &'e ExactValue> {
    events.iter().filter(move |event| event.get("type").and_then(Value::as_str) == Some(kind))
}

/// As in a `dialogue`: `- ai: …`, `- user: …`.
fn transcript(events: &[ExactValue]) -> Value {
    let line = |event: &ExactValue| {
        let role = event.get("role").and_then(Value::as_str).unwrap_or_default();
        json!({ role: event.get("text") })
    };
    of_type(events, "message").map(line).collect()
}

/// The instance path and the round, if there is one: `topic_a#2/ask_1, round 2`.
fn place(event: &Value) -> Value {
    let of = |name: &str| event.get("location").and_then(|location| location.get(name));
    let path = of("path").or_else(|| of("phase_id")).and_then(Value::as_str).unwrap_or_default();
    match of("round").and_then(Value::as_u64) {
        Some(round) => format!("{path}, round {round}").into(),
        None => path.into(),
    }
}

fn outcome(event: &ExactValue) -> ExactValue {
    let mut shown = ExactValues::from_iter([("at".to_owned(), place(event).into())]);
    let fields = [
        "action_type",
        "completed",
        "exit_reason",
        "progress_suggestion",
        "ai_message",
        "extracted_variables",
        "metrics",
    ];
    shown.extend(fields.iter().filter_map(|name| Some(((*name).to_owned(), event.field(name)?))));
    shown.retain(|_, value| !is_nothing(value));
    shown.into_iter().collect()
}

fn event(event: &ExactValue) -> ExactValue {
    let mut shown = ExactValues::new();
    if let Some(kind) = event.field("type") {
        shown.insert("type".to_owned(), kind);
        shown.insert("at".to_owned(), place(event).into());
    }
    let others = event.fields().filter(|(name, _)| *name != "type" && !VOLATILE_FIELDS.contains(name));
    shown.extend(others.map(|(name, value)| (name.to_owned(), without_volatile(value))));
    shown.retain(|_, value| !is_nothing(value));
    shown.into_iter().collect()
}

/// A value without volatile fields, at any depth.
fn without_volatile(value: ExactValue) -> ExactValue {
    match &*value {
        Value::Object(_) => {
            let stable = value.fields().filter(|(name, _)| !VOLATILE_FIELDS.contains(name));
            stable.map(|(name, value)| (name.to_owned(), without_volatile(value))).collect()
        }
        Value::Array(_) => value.items().map(without_volatile).collect(),
        _ => value,
    }
}

fn prompt(event: &Value) -> Option<Value> {
    let messages = event.pointer("/debug_info/llm_prompt")?.as_array()?;
    let message = |message: &Value| {
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        json!({ text("role"): text("content") })
    };
    Some(json!({ "at": place(event), "messages": messages.iter().map(message).collect::<Value>() }))
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
