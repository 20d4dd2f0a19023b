//! Masks sensitive values in plans that are shown or exported (docs/plans.md).

use bcc_lang::value::mask::{MASK, Masker};
use serde_json::{Map, Value};

use crate::plan::task::{PlanHead, PlanTask};
use crate::plan::tree::PlanTree;

/// How plans are masked.
#[derive(Debug)]
pub enum PlanMasker {
    /// These values are masked.
    Values(Masker),
    /// Everything that somebody wrote is masked: a session that edited the plan is gone, and with it the sensitive values that it knew.
    AllTexts,
}

impl PlanMasker {
    /// The same head with sensitive values masked.
    #[must_use]
    pub fn head(&self, head: &PlanHead) -> PlanHead {
        let mut head = head.clone();
        let texts = [Some(&mut head.title), Some(&mut head.goal), head.notes.as_mut(), head.style.as_mut()];
        texts.into_iter().flatten().for_each(|text| self.text(text));
        head.sections.iter_mut().for_each(|sections| self.data(sections));
        head
    }

    /// The same plan with sensitive values masked.
    #[must_use]
    pub fn tree(&self, tree: &PlanTree) -> PlanTree {
        let mut masked = tree.clone();
        if matches!(self, Self::Values(masker) if masker.is_empty()) {
            return masked;
        }
        masked.change_head(|head| *head = self.head(head));
        for task in tree.all().filter_map(|id| tree.task(id)) {
            masked.replace(self.task(task));
        }
        masked
    }

    fn task(&self, task: &PlanTask) -> PlanTask {
        let mut task = task.clone();
        let texts = [Some(&mut task.name), Some(&mut task.instruction), task.task_type.as_mut(), task.error.as_mut()];
        texts.into_iter().flatten().for_each(|text| self.text(text));
        match self {
            Self::Values(masker) => mask_metadata(&mut task.metadata, masker),
            // Whether somebody must approve the task stays known.
            Self::AllTexts => task.metadata.retain(|name, value| {
                name == "approve" && (value.is_boolean() || value == "always" || value == "never")
            }),
        }
        self.data(&mut task.result);
        task
    }

    fn text(&self, text: &mut String) {
        match self {
            Self::Values(masker) => *text = masker.text(text),
            Self::AllTexts if text.is_empty() => {}
            Self::AllTexts => MASK.clone_into(text),
        }
    }

    fn data(&self, value: &mut Value) {
        match self {
            Self::Values(masker) => masker.data(value),
            Self::AllTexts if value.is_null() => {}
            Self::AllTexts => *value = MASK.into(),
        }
    }
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
