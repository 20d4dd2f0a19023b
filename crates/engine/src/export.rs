//! `sessions export` as JSON (docs/exports.md). Sensitive values are masked; prompts and raw replies are included only on
//! request.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::program::stored_event::{make_public, message_at};
use bcc_runtime::run::head::SessionStatus;
use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::calls::usage;
use crate::error::EngineError;
use crate::exported_notebook::{mask_notebook, notebook, open_effects};
use crate::history;
use crate::session_variables::user_variables;
use crate::taken_back::TakenBackEvents;
use crate::usage::used;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::mask::{MASK, Masker};
use bcc_runtime::program::event_masking::{mask as mask_event, mask_path, mask_row, masked_path};
use bcc_store::contract::Store;
use bcc_store::rows::{OpenRequest, SessionRow, VariableRow};

/// The number of rows that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

/// Fields of an outcome that contain prompts or raw replies.
const CALL_FIELDS: [&str; 3] = ["llm_prompt", "llm_response", "raw_response"];

/// A session in its public form, for programs.
pub async fn export(store: &dyn Store, id: &str, calls: bool) -> Result<ExactValue, EngineError> {
    let mut export = document(store, id, calls).await?;
    export.change(make_document_public);
    Ok(export)
}

/// Converts a document to its public form: removes the data from which its messages can be translated.
pub fn make_document_public(document: &mut Value) {
    for part in ["/plans", "/session/open_effects"] {
        let rows = document.pointer_mut(part).and_then(Value::as_array_mut);
        rows.into_iter().flatten().for_each(make_public);
    }
}

/// A session with the data of the messages of its plans and open effects, so that they can be translated.
pub async fn document(store: &dyn Store, id: &str, calls: bool) -> Result<ExactValue, EngineError> {
    let row = stored_session(store, id).await?;
    let variables = store.variables(id).await?;
    let user_variables = user_variables(store, &row).await?;
    let mut outcomes = Vec::new();
    let mut metrics = Vec::new();
    let mut suggestions = Vec::new();
    let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
    for mut event in taken_back.others(stored_events(store, id, "outcome").await?) {
        if let Some((metric, suggestion)) = history::metrics(&event) {
            metrics.push(metric);
            suggestions.push(suggestion);
        }
        event.change(|event| {
            make_public(event);
            if !calls {
                without_calls(event);
            }
        });
        outcomes.push(event);
    }
    let outcomes = ExactValue::from_iter(outcomes);
    let masker = masker(&variables, &user_variables)?;
    let scopes = scopes(&variables, &user_variables, &masker)?;
    let mut feedback = history::feedback(&taken_back.others(events_of(store, id, "monitor_feedback").await?));
    let orchestrated = taken_back.others(stored_events(store, id, "orchestrated").await?);
    let mut plans: Vec<Value> = orchestrated.iter().map(|event| history::plan(event)).collect();
    if !calls {
        feedback.iter_mut().chain(&mut plans).for_each(without_calls);
    }
    let mut model_calls = events_of(store, id, "model_call").await?;
    taken_back.mark(&mut model_calls);
    let usage = usage(&model_calls);
    if !calls {
        model_calls.iter_mut().for_each(without_calls);
    }
    let mut export = json!({
        "version": 1,
        "session": session(&row, end_reason(store, &row).await?.as_ref()),
        "transcript": transcript(store, id).await?,
        "variables": *scopes,
        "action_metrics_history": metrics,
        "progress_suggestion_history": suggestions,
        "monitor_feedback": feedback,
        "plans": plans,
        "outcomes": *outcomes,
        "usage": usage,
        "model_calls": model_calls,
    });
    if let (Some(fields), Some(notebook)) = (export.as_object_mut(), notebook(store, id, &variables).await?) {
        fields.insert("notebook".to_owned(), notebook);
    }
    if let Some(fields) = export.as_object_mut().filter(|_| !taken_back.is_empty()) {
        fields.insert("taken_back".to_owned(), taken_back.rows());
    }
    let open = open_effects(store, id).await?;
    if let Some(session) = export.pointer_mut("/session").and_then(Value::as_object_mut).filter(|_| !open.is_empty()) {
        session.insert("open_effects".to_owned(), Value::Array(open));
    }
    mask(&mut export, &masker);
    let parts = [("variables", scopes), ("outcomes", outcomes)];
    let digits = Digits::of_fields(parts.map(|(name, part)| (name.to_owned(), part.digits().cloned())));
    Ok(ExactValue::new(export, digits))
}

pub async fn stored_session(store: &dyn Store, id: &str) -> Result<SessionRow, EngineError> {
    store.session(id).await?.ok_or_else(|| {
        EngineError::usage(msg!("there is no session `{id}` in this store"))
            .with_help("run `bcc-script sessions list` to list the sessions")
    })
}

/// All events of one kind, in their public form.
pub async fn events_of(store: &dyn Store, id: &str, kind: &str) -> Result<Vec<Value>, EngineError> {
    let mut events: Vec<Value> =
        stored_events(store, id, kind).await?.into_iter().map(ExactValue::into_value).collect();
    events.iter_mut().for_each(make_public);
    Ok(events)
}

/// All events of one kind, as they are stored.
pub(crate) async fn stored_events(store: &dyn Store, id: &str, kind: &str) -> Result<Vec<ExactValue>, EngineError> {
    let mut events = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.journal_by_kind(id, kind, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(events) };
        after = last.seq;
        for row in &rows {
            events.push(parse_exact(&row.body, "event")?);
        }
    }
}

/// Why a session failed or stopped; `None` for any other status.
pub(crate) async fn end_reason(store: &dyn Store, row: &SessionRow) -> Result<Option<Message>, EngineError> {
    let kind = match SessionStatus::parse(&row.status) {
        Some(SessionStatus::Failed) => "session_failed",
        Some(SessionStatus::Stopped) => "session_stopped",
        _ => return Ok(None),
    };
    let Some(event) = store.last_by_kind(&row.id, kind).await? else { return Ok(None) };
    let reason = message_at(&parse(&event.body, "event")?, "/summary/reason");
    Ok(Some(reason).filter(|reason| !reason.is_empty()))
}

fn session(row: &SessionRow, reason: Option<&Message>) -> Value {
    let (used, budget) = used(row);
    let mut session = json!({
        "id": row.id, "user": row.user, "status": row.status, "script": row.script, "script_name": row.script_name,
        "script_sha256": row.script_sha256, "started_at": row.started_at, "updated_at": row.updated_at,
        "used": used, "budget": budget,
        "location": serde_json::from_str::<Value>(&row.location).unwrap_or(Value::Null),
    });
    if let (Some(fields), Some(reason)) = (session.as_object_mut(), reason) {
        fields.insert("reason".to_owned(), Value::from(reason.to_string()));
    }
    session
}

pub(crate) async fn transcript(store: &dyn Store, id: &str) -> Result<Vec<Value>, EngineError> {
    // A message has only its action and round; its event has the complete location.
    let mut places = HashMap::new();
    for event in events_of(store, id, "message").await? {
        let message_id = event.get("message_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        places.insert(message_id, event.get("location").cloned().unwrap_or_default());
    }
    let mut transcript = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.messages(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(transcript) };
        after = last.number;
        transcript.extend(rows.iter().map(|row| {
            let place = places.get(&row.message_id);
            let part = |name: &str| place.and_then(|place| place.get(name)).cloned().unwrap_or_default();
            json!({
                "role": row.role, "text": row.text, "at": row.at, "action_id": row.action_id, "round": row.round,
                "phase_id": part("phase_id"), "topic_id": part("topic_id"), "path": part("path"),
            })
        }));
    }
}

/// The variables by scope, those of phases and topics also by path. Names of elements in paths are masked; those that are the same then are
/// numbered.
fn scopes(rows: &[VariableRow], user_rows: &[VariableRow], masker: &Masker) -> Result<ExactValue, EngineError> {
    let mut scopes: IndexMap<&str, ExactValues> =
        ["global", "session", "phase", "topic"].into_iter().map(|scope| (scope, ExactValues::new())).collect();
    let mut visits: IndexMap<(&str, &str), ExactValues> = IndexMap::new();
    for row in user_rows.iter().chain(rows) {
        let value = if row.sensitive { Value::from(MASK).into() } else { parse_exact(&row.value, "variable")? };
        let origin = [("source", json!(row.source)), ("round", json!(row.round)), ("at", json!(row.at))];
        let origin = origin.map(|(name, part)| (name.to_owned(), ExactValue::from(part)));
        let shown = [("value".to_owned(), value)].into_iter().chain(origin).collect();
        let Some(scope) = scopes.get_mut(row.scope.as_str()) else { continue };
        if matches!(row.scope.as_str(), "phase" | "topic") {
            visits.entry((&row.scope, &row.path)).or_default().insert(row.name.clone(), shown);
        } else {
            scope.insert(row.name.clone(), shown);
        }
    }
    for ((scope, path), values) in visits {
        let by_path = scopes.entry(scope).or_default();
        let masked = masked_path(path, masker);
        let mut names = std::iter::once(masked.clone()).chain((2..).map(|number| format!("{masked}_{number}")));
        let unused = names.find(|name| !by_path.contains_key(name)).unwrap_or_else(|| masked.clone());
        by_path.insert(unused, values.into_iter().collect());
    }
    Ok(scopes.into_iter().map(|(scope, values)| (scope.to_owned(), values.into_iter().collect())).collect())
}

/// The masker for the sensitive values of these variables.
pub fn masker(rows: &[VariableRow], user_rows: &[VariableRow]) -> Result<Masker, EngineError> {
    let mut values = Vec::new();
    for row in rows.iter().chain(user_rows).filter(|row| row.sensitive) {
        values.push(parse_exact(&row.value, "variable")?);
    }
    Ok(Masker::new(&values))
}

/// The masker for the sensitive values of a session and of its user.
///
/// # Errors
/// The store cannot be read.
pub async fn masker_of(store: &dyn Store, row: &SessionRow) -> Result<Masker, EngineError> {
    masker(&store.variables(&row.id).await?, &user_variables(store, row).await?)
}

/// Masks sensitive values in open requests, each with those of its session. A question in the conversation is stored as the person is to see
/// it, and lists are for others.
///
/// # Errors
/// The store cannot be read.
pub async fn mask_requests(store: &dyn Store, requests: &mut [OpenRequest]) -> Result<(), EngineError> {
    let mut maskers: HashMap<String, Masker> = HashMap::new();
    for OpenRequest { session, request } in requests {
        if !maskers.contains_key(session) {
            let Some(row) = store.session(session).await? else { continue };
            maskers.insert(session.clone(), masker_of(store, &row).await?);
        }
        let Some(masker) = maskers.get(session) else { continue };
        request.prompt = masker.text(&request.prompt);
    }
    Ok(())
}

fn mask(export: &mut Value, masker: &Masker) {
    for (part, value) in export.as_object_mut().into_iter().flatten() {
        // Ids and times are not masked.
        match part.as_str() {
            "version" | "usage" => {}
            "session" => mask_location(value, masker),
            "taken_back" => value.as_array_mut().into_iter().flatten().for_each(|row| mask_location(row, masker)),
            "notebook" => mask_notebook(value, masker),
            "model_calls" | "outcomes" => value.as_array_mut().into_iter().flatten().for_each(|event| {
                mask_event(event, masker);
                mask_location(event, masker);
            }),
            "variables" => mask_variables(value, masker),
            _ => value.as_array_mut().into_iter().flatten().for_each(|row| mask_row(row, masker)),
        }
    }
}

fn mask_location(of: &mut Value, masker: &Masker) {
    of.pointer_mut("/location/path").into_iter().for_each(|path| mask_path(path, masker));
}

/// Masks sensitive values in the values of variables, which are by scope, and those of phases and topics also by path.
fn mask_variables(scopes: &mut Value, masker: &Masker) {
    for (scope, values) in scopes.as_object_mut().into_iter().flatten() {
        let variables: &mut dyn FnMut(&mut Value) = &mut |values| {
            let values = values.as_object_mut().into_iter().flatten();
            values.filter_map(|(_, shown)| shown.get_mut("value")).for_each(|value| masker.data(value));
        };
        match scope.as_str() {
            "phase" | "topic" => values.as_object_mut().into_iter().flatten().for_each(|(_, values)| variables(values)),
            _ => variables(values),
        }
    }
}

fn without_calls(event: &mut Value) {
    for part in ["debug_info", "metadata"] {
        if let Some(fields) = event.get_mut(part).and_then(Value::as_object_mut) {
            fields.retain(|name, _| !CALL_FIELDS.contains(&name.as_str()));
        }
    }
}

/// As [`parse`], with the digits of numbers.
pub(crate) fn parse_exact(text: &str, what: &str) -> Result<ExactValue, EngineError> {
    ExactValue::parse(text).map_err(|error| unreadable(what, &error))
}

fn unreadable(what: &str, error: &serde_json::Error) -> EngineError {
    EngineError::failed(msg!("a stored {what} cannot be read: {error}"))
}

/// Parses a stored text. `what` describes it in the error message.
pub fn parse(text: &str, what: &str) -> Result<Value, EngineError> {
    serde_json::from_str(text).map_err(|error| unreadable(what, &error))
}
