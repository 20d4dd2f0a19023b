//! Changes of the context that come with a response (docs/protocol.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::notebook::action::fields::ActionFields;
use crate::notebook::error::ActionFieldError;
use crate::notebook::state::{MOST_COMPLETED, MOST_TODO, MOST_TODO_BYTES, NotebookState};

/// What is done to the todo list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TodoUpdate {
    /// These are added at the end; those that are there already stay where they are.
    Add(Vec<String>),
    /// These are removed; those that are not there are passed over.
    Remove(Vec<String>),
    /// These take the place of all.
    Replace(Vec<String>),
    /// None are left.
    Clear,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextUpdate {
    pub variables: Map<String, Value>,
    pub todo: Option<TodoUpdate>,
    /// The progress of sections: fields that were not sent stay as they are.
    pub section_progress: Option<Map<String, Value>>,
}

impl ContextUpdate {
    /// Takes over the todo list and the progress of sections. Variables are the caller's: declared ones go through the turn.
    /// Gives what was left out because it is too much or of a wrong type, in words without what was sent.
    pub fn apply(&self, state: &mut NotebookState) -> Vec<Message> {
        let mut left_out = Vec::new();
        match &self.todo {
            None => {}
            Some(TodoUpdate::Add(items)) => add(&mut state.todo_list, items, &mut left_out),
            Some(TodoUpdate::Remove(items)) => {
                state.todo_list.retain(|there| !items.iter().any(|item| item.trim() == there));
            }
            Some(TodoUpdate::Replace(items)) => {
                state.todo_list.clear();
                add(&mut state.todo_list, items, &mut left_out);
            }
            Some(TodoUpdate::Clear) => state.todo_list.clear(),
        }
        if let Some(sent) = &self.section_progress {
            progress(state, sent, &mut left_out);
        }
        left_out
    }
}

/// Adds items at the end: no empty ones, none twice, none that are too much.
fn add(list: &mut Vec<String>, items: &[String], left_out: &mut Vec<Message>) {
    let (mut long, mut many) = (0_usize, 0_usize);
    for item in items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()) {
        if item.len() > MOST_TODO_BYTES {
            long += 1;
        } else if list.iter().any(|there| there == item) {
        } else if list.len() >= MOST_TODO {
            many += 1;
        } else {
            list.push(item.to_owned());
        }
    }
    if long > 0 {
        left_out.push(msg!("{long} items of the todo list are longer than {MOST_TODO_BYTES} bytes"));
    }
    if many > 0 {
        left_out.push(msg!("the todo list is full at {MOST_TODO} items: {many} were omitted"));
    }
}

/// Takes over what was sent of the progress of sections: each field alone, null for nothing.
fn progress(state: &mut NotebookState, sent: &Map<String, Value>, left_out: &mut Vec<Message>) {
    let is_sent = |name: &str| sent.contains_key(name);
    let fields = ActionFields::of(sent);
    let mut note = |fault: ActionFieldError| left_out.push(fault.message);
    let now = &mut state.section_progress;
    if is_sent("current_section_id") {
        fields.name(&["current_section_id"]).map_or_else(&mut note, |id| now.current_section_id = id);
    }
    if is_sent("current_section_number") {
        fields.count("current_section_number").map_or_else(&mut note, |number| now.current_section_number = number);
    }
    if is_sent("total_expected") {
        fields.count("total_expected").map_or_else(&mut note, |total| now.total_expected = total);
    }
    if is_sent("completed_sections") {
        fields.names("completed_sections", MOST_COMPLETED).map_or_else(&mut note, |sections| {
            now.completed_sections = sections;
        });
    }
}
