//! Masks sensitive values in plans that are shown or exported (docs/plans.md).

use bcc_lang::value::mask::Masker;
use serde_json::{Map, Value};

use crate::plan::task::{PlanHead, PlanTask};
use crate::plan::tree::PlanTree;

impl PlanTree {
    /// The same plan with sensitive values masked.
    #[must_use]
    pub fn masked(&self, masker: &Masker) -> Self {
        let mut masked = self.clone();
        if masker.is_empty() {
            return masked;
        }
        masked.change_head(|head| *head = head.masked(masker));
        for task in self.all().filter_map(|id| self.task(id)) {
            masked.replace(masked_task(task, masker));
        }
        masked
    }
}

impl PlanHead {
    /// The same head with sensitive values masked.
    #[must_use]
    pub fn masked(&self, masker: &Masker) -> Self {
        let mut head = self.clone();
        let texts = [Some(&mut head.title), Some(&mut head.goal), head.notes.as_mut(), head.style.as_mut()];
        texts.into_iter().flatten().for_each(|text| *text = masker.text(text));
        head.sections.iter_mut().for_each(|sections| masker.data(sections));
        head
    }
}

fn masked_task(task: &PlanTask, masker: &Masker) -> PlanTask {
    let mut task = task.clone();
    let texts = [Some(&mut task.name), Some(&mut task.instruction), task.task_type.as_mut(), task.error.as_mut()];
    texts.into_iter().flatten().for_each(|text| *text = masker.text(text));
    mask_metadata(&mut task.metadata, masker);
    masker.data(&mut task.result);
    task
}

/// What decides how the task runs is from the engine: the name of its tool, and whether somebody approves it.
fn mask_metadata(metadata: &mut Map<String, Value>, masker: &Masker) {
    for (name, value) in metadata.iter_mut() {
        match (name.as_str(), value.as_object_mut()) {
            ("approve", None) => {}
            ("tool", Some(tool)) => {
                tool.iter_mut().filter(|(name, _)| name.as_str() != "name").for_each(|(_, part)| masker.data(part));
            }
            _ => masker.data(value),
        }
    }
    masker.keys(metadata, &["approve", "tool"]);
}
