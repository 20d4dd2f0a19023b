//! Compensations that a session takes over from an earlier one of the same state file, which ended without them (docs/workflows.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::Scope;
use bcc_store::rows::VariableRow;

use crate::program::program::Program;
use crate::run::compensation_records::{Compensation, newest};
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{BLOCK, Frame, FrameTarget, Frames, ROOT, component, id_of, lineage, skill_path};
use crate::run::session::Session;

/// The completed actions of a session that can be undone and were not, in the order of completion.
#[derive(Clone, Debug, Default)]
pub struct OpenCompensations {
    /// The keys of the actions, each with the frames down to it.
    actions: Vec<(String, Vec<(String, Frame)>)>,
    /// The variables of that session.
    variables: Vec<VariableRow>,
}

impl OpenCompensations {
    /// Only those of these steps and sub tasks, and of what they called.
    #[must_use]
    pub fn of_steps(mut self, ids: &BTreeSet<String>) -> Self {
        self.actions.retain(|(key, frames)| step_or_sub_task(key, frames).is_some_and(|id| ids.contains(id)));
        self
    }
}

/// The id of the step of the topic that contains the action `key`, or of the sub task if the step has branches.
fn step_or_sub_task<'k>(key: &'k str, frames: &[(String, Frame)]) -> Option<&'k str> {
    let (topic, _) = frames.iter().find(|(_, frame)| frame.at == FrameTarget::Topic)?;
    let mut inside = key.strip_prefix(topic.as_str())?.split('/').skip(1);
    let step = inside.next()?;
    let is_branch = inside.next().is_some_and(|component| component.starts_with(BLOCK));
    Some(id_of(if is_branch { inside.next()? } else { step }))
}

/// The paths of the variables of the skills around an action, outermost first.
fn skill_paths(frames: &[(String, Frame)]) -> impl Iterator<Item = String> {
    frames.iter().filter(|(_, frame)| matches!(frame.at, FrameTarget::Skill(_))).map(|(key, _)| skill_path(key))
}

impl Session {
    /// What can be undone of this session.
    ///
    /// # Errors
    /// The store failed.
    pub async fn open_compensations(&self) -> Result<OpenCompensations, RunError> {
        let variables = self.store.variables(&self.id).await?;
        let mut open: Vec<_> = newest(&self.compensations).into_values().filter(|(_, record)| !record.done).collect();
        open.sort_by_key(|(_, record)| record.order);
        let actions = open.into_iter().map(|(key, record)| (key.to_owned(), record.frames.clone())).collect();
        Ok(OpenCompensations { actions, variables })
    }

    /// Takes over those compensations that the script still has, unless it has them already. Called before the first turn.
    ///
    /// # Errors
    /// The store failed.
    pub async fn take_over_compensations(&mut self, open: OpenCompensations) -> Result<(), RunError> {
        let program = Arc::clone(&self.program);
        let mut draft = CommitDraft::default();
        let mut order = self.compensations.values().map(|record| record.order).max().unwrap_or(0);
        let before = order;
        let own: BTreeSet<String> = self.compensations.values().map(Compensation::place).collect();
        let mut skills = BTreeSet::new();
        for (key, earlier) in open.actions {
            let Some((key, frames)) = self.moved_here(&program, &key, earlier.clone()) else { continue };
            let record = Compensation { order: order + 1, frames, branch_path: None, done: false };
            if own.contains(&record.place()) {
                continue;
            }
            order += 1;
            skills.extend(skill_paths(&earlier).zip(skill_paths(&record.frames)));
            self.put_compensation(key, record, &mut draft)
                .map_err(|failure| RunError::Unreadable { id: self.id.clone(), what: failure.message })?;
        }
        for (earlier, path) in skills {
            let rows = open.variables.iter().filter(|row| row.scope == Scope::Topic.name() && row.path == earlier);
            for row in rows {
                if let Ok(value) = ExactValue::parse(&row.value)
                    && row.sensitive
                {
                    self.hide(&value, &mut draft)
                        .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() })?;
                }
                draft.variables.push(VariableRow { path: path.clone(), ..row.clone() });
            }
        }
        if order == before { Ok(()) } else { self.commit(draft).await }
    }

    /// The key and the frames of an action of an earlier session in this one, whose program may have other steps around it. `None` if the
    /// program has no such action with a compensation.
    fn moved_here(
        &self,
        program: &Program,
        key: &str,
        frames: Vec<(String, Frame)>,
    ) -> Option<(String, Vec<(String, Frame)>)> {
        let is_topic = |frame: &Frame| frame.at == FrameTarget::Topic;
        let earlier_topic = frames.iter().find(|(_, frame)| is_topic(frame))?.0.clone();
        let leaf = self.frames.leaf();
        let topic_key = lineage(&leaf).find(|key| self.frames.get(key).is_some_and(is_topic))?;
        let below = |key: &str| {
            key.strip_prefix(earlier_topic.as_str()).filter(|rest| rest.starts_with('/')).map(str::to_owned)
        };
        let step = below(key)?.split('/').nth(1).map(|step| id_of(step).to_owned())?;
        let next = self.topic_of_frame(program, topic_key)?.steps.iter().position(|own| own.id == step)?;
        let mut moved: Vec<(String, Frame)> = std::iter::once(ROOT)
            .chain(lineage(topic_key))
            .filter_map(|key| Some((key.to_owned(), self.frames.get(key)?.position_only())))
            .collect();
        moved.last_mut()?.1.next = next;
        let inside =
            frames.into_iter().filter_map(|(key, frame)| Some((format!("{topic_key}{}", below(&key)?), frame)));
        moved.extend(inside);
        let key = format!("{topic_key}{}", below(key)?);
        let mut found = Frames::new();
        moved.iter().for_each(|(key, frame)| found.put(key.clone(), frame.clone()));
        let step = found.position(program, &key)?.step;
        (step.id == id_of(component(&key)) && !step.compensate.is_empty()).then_some((key, moved))
    }
}
