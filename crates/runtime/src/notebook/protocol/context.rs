//! Applies the context changes of a response (docs/protocol.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::notebook::action::fields::ActionFields;
use crate::notebook::error::ActionFieldError;
use crate::notebook::state::{MAX_COMPLETED_SECTIONS, MAX_TODO_ITEM_BYTES, MAX_TODO_ITEMS, NotebookState};

/// A change of the todo list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TodoUpdate {
    /// Adds these items at the end; existing items keep their place.
    Add(Vec<String>),
    /// Removes these items; unknown ones are ignored.
    Remove(Vec<String>),
    /// Replaces all items by these.
    Replace(Vec<String>),
    /// Removes all items.
    Clear,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextUpdate {
    pub variables: Map<String, Value>,
    pub todo: Option<TodoUpdate>,
    /// The section progress; fields that were not sent are not changed.
    pub section_progress: Option<Map<String, Value>>,
}

impl ContextUpdate {
    /// Applies the changes of the todo list and of the section progress. The caller sets the variables, because declared ones
    /// go through the turn. Returns a message for each part that was omitted because it is too large or has a wrong type,
    /// without the sent values.
    pub fn apply(&self, state: &mut NotebookState) -> Vec<Message> {
        let mut omitted = Vec::new();
        match &self.todo {
            None => {}
            Some(TodoUpdate::Add(items)) => add(&mut state.todo_list, items, &mut omitted),
            Some(TodoUpdate::Remove(items)) => {
                state.todo_list.retain(|existing| !items.iter().any(|item| item.trim() == existing));
            }
            Some(TodoUpdate::Replace(items)) => {
                state.todo_list.clear();
                add(&mut state.todo_list, items, &mut omitted);
            }
            Some(TodoUpdate::Clear) => state.todo_list.clear(),
        }
        if let Some(sent) = &self.section_progress {
            progress(state, sent, &mut omitted);
        }
        omitted
    }
}

/// Adds items at the end, without empty ones, duplicates, and items beyond the limits.
fn add(list: &mut Vec<String>, items: &[String], omitted: &mut Vec<Message>) {
    let (mut too_long, mut beyond_limit) = (0_usize, 0_usize);
    for item in items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()) {
        if item.len() > MAX_TODO_ITEM_BYTES {
            too_long += 1;
        } else if list.iter().any(|existing| existing == item) {
        } else if list.len() >= MAX_TODO_ITEMS {
            beyond_limit += 1;
        } else {
            list.push(item.to_owned());
        }
    }
    if too_long > 0 {
        omitted.push(msg!("{too_long} items of the todo list are longer than {MAX_TODO_ITEM_BYTES} bytes"));
    }
    if beyond_limit > 0 {
        omitted.push(msg!("the todo list is full at {MAX_TODO_ITEMS} items: {beyond_limit} were omitted"));
    }
}

/// Applies the sent fields of the section progress, each on its own; null clears a field.
fn progress(state: &mut NotebookState, sent: &Map<String, Value>, omitted: &mut Vec<Message>) {
    let is_sent = |name: &str| sent.contains_key(name);
    let fields = ActionFields::new(sent);
    let mut note = |error: ActionFieldError| omitted.push(error.message);
    let section_progress = &mut state.section_progress;
    if is_sent("current_section_id") {
        fields.name(&["current_section_id"]).map_or_else(&mut note, |id| section_progress.current_section_id = id);
    }
    if is_sent("current_section_number") {
        fields
            .count("current_section_number")
            .map_or_else(&mut note, |number| section_progress.current_section_number = number);
    }
    if is_sent("total_expected") {
        fields.count("total_expected").map_or_else(&mut note, |total| section_progress.total_expected = total);
    }
    if is_sent("completed_sections") {
        fields.names("completed_sections", MAX_COMPLETED_SECTIONS).map_or_else(&mut note, |sections| {
            section_progress.completed_sections = sections;
        });
    }
}
