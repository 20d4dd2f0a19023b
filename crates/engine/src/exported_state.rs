//! `sessions export --format protocol`: the state of a session in the form of the behavior protocol, from which another session can
//! begin (docs/protocol.md, "State files").

use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::source::compose;
use bcc_lang::source::diagnostic::Severity;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::notebook::protocol::state_document::read::read_state;
use bcc_runtime::notebook::protocol::state_document::write::{StateDocumentSource, state_document};
use bcc_runtime::program::event_masking::{mask_cell, mask_fields};
use bcc_store::contract::Store;
use serde_json::{Map, Value};

use crate::error::EngineError;
use crate::export::{masker, parse, parse_exact, stored_session};
use crate::exported_notebook::{stored_cells, stored_state};
use crate::session_variables::user_variables;

/// The state of a session, without sensitive values.
///
/// # Errors
/// There is no such session, or its rows cannot be read.
pub async fn protocol_state(store: &dyn Store, id: &str) -> Result<ExactValue, EngineError> {
    let row = stored_session(store, id).await?;
    let rows = store.variables(id).await?;
    let user_rows = user_variables(store, &row).await?;
    let masker = masker(&rows, &user_rows)?;
    let (mut variables, mut digits) = (Map::new(), vec![]);
    let scopes = ["global", "session", "phase", "topic"];
    for row in user_rows.iter().chain(&rows).filter(|row| !row.sensitive && scopes.contains(&row.scope.as_str())) {
        let value = parse_exact(&row.value, "variable")?;
        if !value.is_null() {
            digits.push((row.name.clone(), value.digits().cloned()));
            variables.insert(row.name.clone(), value.into_value());
        }
    }
    let state = stored_state(&rows)?.unwrap_or_default();
    let mut cells = stored_cells(store, id).await?;
    // What a person approved here is not approved elsewhere.
    cells.iter_mut().filter_map(Value::as_object_mut).for_each(|cell| _ = cell.shift_remove("approved"));
    cells.iter_mut().for_each(|cell| mask_cell(cell, &masker));
    let (mut feedback, mut is_judged_next) = (None, false);
    for row in store.frames(id).await? {
        let frame = parse(&row.state, "frame")?;
        // The frame of a behavior loop (docs/actions/behavior_loop.md).
        let Some(of_loop) = frame.get("state").filter(|state| state.get("behaviors").is_some()) else { continue };
        is_judged_next = of_loop.get("at").and_then(Value::as_str) == Some("reflect");
        let part = if is_judged_next { of_loop.pointer("/current/counts") } else { of_loop.get("feedback") };
        feedback = part.and_then(|part| serde_json::from_value(part.clone()).ok());
    }
    let source = StateDocumentSource { state: &state, cells: vec![], variables, feedback, is_judged_next };
    let mut document = state_document(source);
    let variables = document.pointer_mut("/observation/context/variables");
    variables.into_iter().for_each(|variables| mask_fields(variables, &masker));
    masker.value(&mut document, &[]);
    if let Some(stored) = document.pointer_mut("/observation/context/notebook/cells") {
        *stored = Value::Array(cells);
    }
    let digits = ["variables", "context", "observation"]
        .into_iter()
        .fold(Digits::of_fields(digits), |part, name| Digits::of_fields([(name.to_owned(), part)]));
    Ok(ExactValue::new(document, digits))
}

/// Why no session can begin from a state, as text: a session may have more than a state may.
pub fn why_unreadable(state: &str) -> Option<Message> {
    let file = Arc::new(SourceFile::new("state.json", state));
    let parsed = compose::parse(&file);
    let found = parsed.root.map(|root| read_state(&file, &root).1).unwrap_or(parsed.diagnostics);
    found.into_iter().find(|found| found.severity == Severity::Error).map(|found| found.message)
}
