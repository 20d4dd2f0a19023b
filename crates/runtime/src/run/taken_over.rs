//! Compensations that a session takes over from an earlier one of the same state file, which ended without them (docs/workflows.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::program::program::Program;
use crate::run::compensation_records::Compensation;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{Frame, FrameTarget, Frames, ROOT, component, id_of, lineage};
use crate::run::session::Session;

/// The completed actions of a session that can be undone and were not, in the order of completion.
#[derive(Clone, Debug, Default)]
pub struct OpenCompensations(Vec<(String, Vec<(String, Frame)>)>);

impl OpenCompensations {
    /// Only those of these actions.
    #[must_use]
    pub fn of_actions(mut self, ids: &BTreeSet<String>) -> Self {
        self.0.retain(|(key, _)| ids.contains(id_of(component(key))));
        self
    }
}

impl Session {
    pub fn open_compensations(&self) -> OpenCompensations {
        let mut open: Vec<_> = self.compensations.iter().filter(|(_, record)| !record.done).collect();
        open.sort_by_key(|(_, record)| record.order);
        OpenCompensations(open.into_iter().map(|(key, record)| (key.clone(), record.frames.clone())).collect())
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
        for (key, frames) in open.0 {
            let Some((key, frames)) = self.moved_here(&program, &key, frames) else { continue };
            if self.compensations.contains_key(&key) {
                continue;
            }
            order += 1;
            let record = Compensation { order, frames, branch_path: None, done: false };
            self.put_compensation(key, record, &mut draft)
                .map_err(|failure| RunError::Unreadable { id: self.id.clone(), what: failure.message })?;
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
