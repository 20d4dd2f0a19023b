//! Finds tasks by their names.

use std::collections::{BTreeSet, HashMap};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::did_you_mean;

use crate::plan::error::OperationError;
use crate::plan::operation::TaskReference;
use crate::plan::task::TaskId;
use crate::plan::tree::PlanTree;

/// The maximum number of tasks that are listed when a name is ambiguous.
const MAX_CANDIDATES: usize = 10;

/// The maximum number of names that are compared with an unknown one.
const MAX_COMPARED: usize = 1_000;

/// The tasks by their names, and by their names without case and width.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NameIndex {
    exact: HashMap<String, BTreeSet<TaskId>>,
    folded: HashMap<String, BTreeSet<TaskId>>,
}

impl NameIndex {
    pub(crate) fn insert(&mut self, name: &str, id: TaskId) {
        self.exact.entry(name.to_owned()).or_default().insert(id);
        self.folded.entry(folded(name)).or_default().insert(id);
    }

    pub(crate) fn remove(&mut self, name: &str, id: TaskId) {
        for (index, key) in [(&mut self.exact, name.to_owned()), (&mut self.folded, folded(name))] {
            if let Some(ids) = index.get_mut(&key) {
                ids.remove(&id);
                if ids.is_empty() {
                    index.remove(&key);
                }
            }
        }
    }
}

/// A name without the differences that are ignored: case, full-width letters, and the amount of space.
fn folded(name: &str) -> String {
    let half = name.chars().map(|c| match u32::from(c) {
        code @ 0xff01..=0xff5e => char::from_u32(code.saturating_sub(0xfee0)).unwrap_or(c),
        _ => c,
    });
    let lower: String = half.flat_map(char::to_lowercase).collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl PlanTree {
    /// The task that is meant.
    /// Errors: [`OperationError::UnknownTask`], [`OperationError::UnknownName`], [`OperationError::AmbiguousName`].
    pub fn find(&self, reference: &TaskReference) -> Result<TaskId, OperationError> {
        match reference {
            TaskReference::Id(id) => self.existing(*id).map(|task| task.id),
            TaskReference::Name(name) => self.find_by_name(name),
        }
    }

    /// The task with this name; if none has exactly this name, the one whose name differs only in case and width.
    fn find_by_name(&self, name: &str) -> Result<TaskId, OperationError> {
        let index = self.names();
        let found = index.exact.get(name).or_else(|| index.folded.get(&folded(name)));
        let Some(ids) = found else {
            let names = index.exact.keys().take(MAX_COMPARED).map(String::as_str);
            let help = did_you_mean(name, names).unwrap_or_else(|| msg!("`show_tasks` lists the tasks"));
            return Err(OperationError::UnknownName { name: name.to_owned(), plan: self.id(), help });
        };
        let mut first = ids.iter().copied();
        match (first.next(), first.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let listed = ids.iter().take(MAX_CANDIDATES).map(|id| format!("{id} ({})", self.path(*id)));
                let candidates = Message::values(listed);
                let (name, plan, count) = (name.to_owned(), self.id(), ids.len());
                Err(OperationError::AmbiguousName { name, plan, count, candidates })
            }
        }
    }
}
