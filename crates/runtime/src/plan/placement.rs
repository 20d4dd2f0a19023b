//! Where a task is put: its parent, and its position among the siblings.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::plan::error::OperationError;
use crate::plan::operation::{AnchorPosition, ParentReference, TaskPlacement};
use crate::plan::task::TaskId;
use crate::plan::tree::PlanTree;

/// The place of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResolvedPlace {
    pub(crate) parent: Option<TaskId>,
    pub(crate) position: usize,
    /// Why it is at the end although another place was written.
    pub(crate) note: Option<Message>,
}

/// The place that was written. `moved` is the task that is moved, if any: it does not count among the siblings, and stays with its parent
/// if nothing else is written.
///
/// The parent is the one that was written; otherwise that of the anchor for `before` and `after`, and the anchor itself for
/// `first_child` and `last_child`; otherwise none, or that of the moved task. An anchor that is missing, or is not a child of the
/// parent, gives the end.
pub(crate) fn resolve(
    tree: &PlanTree,
    parent: &ParentReference,
    place: &TaskPlacement,
    moved: Option<TaskId>,
) -> Result<ResolvedPlace, OperationError> {
    let written = match parent {
        ParentReference::Absent => None,
        ParentReference::Root => Some(None),
        ParentReference::Task(reference) => Some(Some(tree.find(reference)?)),
    };
    let anchor = place.anchor.map(|anchor| tree.existing(anchor)).transpose()?;
    let anchor_position = if place.position.is_some() { None } else { place.anchor_position };
    let by_anchor = anchor.and_then(|anchor| match anchor_position {
        Some(AnchorPosition::Before | AnchorPosition::After) => Some(anchor.parent),
        Some(AnchorPosition::FirstChild | AnchorPosition::LastChild) => Some(Some(anchor.id)),
        None => None,
    });
    let current = moved.and_then(|moved| tree.task(moved)).and_then(|task| task.parent);
    let parent = written.or(by_anchor).unwrap_or(current);
    let is_sibling = moved.is_some_and(|moved| tree.task(moved).is_some_and(|task| task.parent == parent));
    let end = tree.child_count(parent).saturating_sub(usize::from(is_sibling));
    // The position of a sibling, without the moved task.
    let position_of = |id: TaskId| {
        let position = tree.position(id).unwrap_or(end);
        let before = moved.filter(|_| is_sibling).and_then(|moved| tree.position(moved));
        position.saturating_sub(usize::from(before.is_some_and(|before| before < position)))
    };
    let mut note = None;
    let position = match (place.position, anchor_position, anchor) {
        (Some(position), ..) => usize::try_from(position).unwrap_or(usize::MAX).min(end),
        (None, Some(AnchorPosition::FirstChild), _) => 0,
        (None, Some(AnchorPosition::LastChild), _) => end,
        (None, Some(AnchorPosition::Before | AnchorPosition::After), None) => {
            note = Some(msg!("it is at the end, because `anchor_task_id` is missing"));
            end
        }
        (None, Some(AnchorPosition::Before | AnchorPosition::After), Some(anchor))
            if anchor.parent != parent || Some(anchor.id) == moved =>
        {
            note = Some(msg!("it is at the end, because task {} is not among the tasks next to it", anchor.id));
            end
        }
        (None, Some(AnchorPosition::Before), Some(anchor)) => position_of(anchor.id),
        (None, Some(AnchorPosition::After), Some(anchor)) => position_of(anchor.id).saturating_add(1).min(end),
        (None, None, Some(_)) => {
            note = Some(msg!("it is at the end, because `anchor_position` is missing"));
            end
        }
        (None, None, None) => end,
    };
    Ok(ResolvedPlace { parent, position, note })
}
