//! The notebook of a session in its export, and its open effects.

use bcc_lang::message::msg;
use bcc_lang::message::stored::StoredMessage;
use bcc_runtime::program::stored_event::{stored_message, with_messages};
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::export::{masker, parse};
use crate::session_variables::user_variables;
use bcc_lang::value::mask::Masker;
use bcc_runtime::notebook::large_outputs::{link, restore_value, take_data};
use bcc_runtime::notebook::state::NotebookState;
use bcc_runtime::program::event_masking::{mask_cell, mask_fields};
use bcc_runtime::run::notebook::read_state;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionRow, VariableRow};

/// The number of cells that are read at a time: one may contain megabytes of output.
const PAGE: usize = 64;

/// The notebook of the session with these variables; none if it has no notebook.
pub async fn notebook(store: &dyn Store, id: &str, rows: &[VariableRow]) -> Result<Option<Value>, EngineError> {
    let Some(state) = stored_state(rows)? else { return Ok(None) };
    Ok(Some(document(&state, stored_cells(store, id).await?)))
}

/// The notebook of a session, masked, in which large data, such as pictures, are links to the addresses that `address` makes of their
/// hashes; none if the session has no notebook.
///
/// # Errors
/// The store cannot be read.
pub async fn linked_notebook(
    store: &dyn Store,
    row: &SessionRow,
    address: impl Fn(&str) -> String,
) -> Result<Option<Value>, EngineError> {
    let id = row.id.as_str();
    let variables = store.variables(id).await?;
    let Some(state) = stored_state(&variables)? else { return Ok(None) };
    let masker = masker(&variables, &user_variables(store, row).await?)?;
    let mut notebook = document(&state, vec![]);
    mask_notebook(&mut notebook, &masker);
    let (mut cells, mut after) = (Vec::new(), 0);
    loop {
        let page = store.cells(id, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for row in &page {
            let mut cell = parse(&row.body, "cell")?;
            let data = take_data(&mut cell);
            restore_value(store, id, &mut cell).await?;
            mask_cell(&mut cell, &masker);
            // Hashes are not masked.
            link(&mut cell, &data, &address);
            cells.push(cell);
        }
    }
    if let Some(fields) = notebook.as_object_mut() {
        fields.insert("cells".to_owned(), Value::Array(cells));
    }
    Ok(Some(notebook))
}

fn document(state: &NotebookState, cells: Vec<Value>) -> Value {
    json!({
        "title": state.title,
        "cells": cells,
        "todo_list": state.todo_list,
        "section_progress": state.section_progress,
        "location": state.location,
        "workflow": state.workflow,
        "effects": state.effects,
        "variables": state.variables,
        "state": state.fsm,
    })
}

/// The state of the notebook in these rows, if there is one.
pub(crate) fn stored_state(rows: &[VariableRow]) -> Result<Option<NotebookState>, EngineError> {
    read_state(rows).map_err(|error| EngineError::failed(msg!("a stored notebook cannot be read: {error}")))
}

/// All cells, with their large outputs.
pub(crate) async fn stored_cells(store: &dyn Store, id: &str) -> Result<Vec<Value>, EngineError> {
    let mut cells = Vec::new();
    let mut after = 0;
    loop {
        let page = store.cells(id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(cells) };
        after = last.number;
        for row in &page {
            let mut cell = parse(&row.body, "cell")?;
            restore_value(store, id, &mut cell).await?;
            cells.push(cell);
        }
    }
}

/// Masks sensitive values in an exported notebook, except for numbers and ids of cells.
pub(crate) fn mask_notebook(notebook: &mut Value, masker: &Masker) {
    for (part, value) in notebook.as_object_mut().into_iter().flatten() {
        match part.as_str() {
            "cells" => value.as_array_mut().into_iter().flatten().for_each(|cell| mask_cell(cell, masker)),
            "variables" => mask_fields(value, masker),
            _ => masker.value(value, &[]),
        }
    }
}

/// The external effects that were announced and are not known to have ended.
pub(crate) async fn open_effects(store: &dyn Store, id: &str) -> Result<Vec<Value>, EngineError> {
    let mut open = Vec::new();
    for row in store.frames(id).await? {
        let frame = parse(&row.state, "frame")?;
        let text = |name: &str| frame.pointer(&format!("/effect/{name}")).cloned().unwrap_or_default();
        if frame.get("effect").is_some_and(Value::is_object) {
            let summary = stored_message(text("summary"));
            let stored = StoredMessage(summary.clone());
            let effect = json!({ "effect_id": text("id"), "kind": text("kind"), "summary": summary });
            open.push(with_messages(effect, &[("/summary", &stored)]));
        }
    }
    Ok(open)
}
