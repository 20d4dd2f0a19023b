//! A plan in memory: its tasks, and the indexes that make every operation independent of their number.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::plan::changes::ChangeLog;
use crate::plan::error::OperationError;
use crate::plan::lookup::NameIndex;
use crate::plan::siblings::SiblingList;
use crate::plan::task::{PlanHead, PlanId, PlanTask, TaskId, TaskStatus};

/// A task, and its rank among its siblings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskNode {
    pub(crate) task: PlanTask,
    pub(crate) rank: i64,
}

/// Gives ids to new tasks.
pub trait TaskIds: Send {
    /// The next id; none if all that were reserved are used.
    fn next_id(&mut self) -> Option<TaskId>;
}

/// Ids from a number on.
#[derive(Clone, Debug)]
pub struct IdsFrom(pub TaskId);

impl TaskIds for IdsFrom {
    fn next_id(&mut self) -> Option<TaskId> {
        let id = self.0;
        self.0 = id.checked_add(1)?;
        Some(id)
    }
}

/// How many tasks have each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    counts: [usize; TaskStatus::ALL.len()],
}

impl StatusCounts {
    pub fn of(&self, status: TaskStatus) -> usize {
        let found = TaskStatus::ALL.iter().zip(self.counts).find(|(other, _)| **other == status);
        found.map_or(0, |(_, count)| count)
    }

    /// All statuses with their numbers, in the order of [`TaskStatus::ALL`].
    pub fn all(&self) -> impl Iterator<Item = (TaskStatus, usize)> {
        TaskStatus::ALL.into_iter().zip(self.counts)
    }

    pub(crate) fn add(&mut self, status: TaskStatus) {
        if let Some(count) = self.count_mut(status) {
            *count = count.saturating_add(1);
        }
    }

    fn subtract(&mut self, status: TaskStatus) {
        if let Some(count) = self.count_mut(status) {
            *count = count.saturating_sub(1);
        }
    }

    fn count_mut(&mut self, status: TaskStatus) -> Option<&mut usize> {
        let index = TaskStatus::ALL.iter().position(|other| *other == status)?;
        self.counts.get_mut(index)
    }
}

/// A plan with its tasks. Positions are those among siblings, from 0.
#[derive(Clone, Debug)]
pub struct PlanTree {
    id: PlanId,
    user: String,
    /// The revision in the store that it had before the changes.
    pub(crate) revision: u64,
    head: PlanHead,
    /// The time of the edit that is being made.
    pub(crate) now: String,
    nodes: HashMap<TaskId, TaskNode>,
    children: HashMap<Option<TaskId>, SiblingList>,
    names: NameIndex,
    /// The tasks that depend on a task.
    dependents: HashMap<TaskId, BTreeSet<TaskId>>,
    counts: StatusCounts,
    changes: ChangeLog,
}

impl PlanTree {
    /// A plan without tasks.
    pub fn new(id: PlanId, user: &str, head: PlanHead) -> Self {
        Self {
            id,
            user: user.to_owned(),
            revision: 0,
            now: head.updated_at.clone(),
            head,
            nodes: HashMap::new(),
            children: HashMap::new(),
            names: NameIndex::default(),
            dependents: HashMap::new(),
            counts: StatusCounts::default(),
            changes: ChangeLog::default(),
        }
    }

    pub fn id(&self) -> PlanId {
        self.id
    }

    /// The user to whom it belongs.
    pub fn user(&self) -> &str {
        &self.user
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn head(&self) -> &PlanHead {
        &self.head
    }

    /// The number of its tasks.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn counts(&self) -> &StatusCounts {
        &self.counts
    }

    pub fn task(&self, id: TaskId) -> Option<&PlanTask> {
        self.nodes.get(&id).map(|node| &node.task)
    }

    /// Errors: [`OperationError::UnknownTask`].
    pub fn existing(&self, id: TaskId) -> Result<&PlanTask, OperationError> {
        self.task(id).ok_or(OperationError::UnknownTask { task: id, plan: self.id })
    }

    /// The position of a task among its siblings, from 0.
    pub fn position(&self, id: TaskId) -> Option<usize> {
        let node = self.nodes.get(&id)?;
        Some(self.children.get(&node.task.parent)?.position(node.rank, id))
    }

    /// The children of a task, or the roots, in order.
    pub fn children(&self, parent: Option<TaskId>) -> impl DoubleEndedIterator<Item = TaskId> + '_ {
        self.children.get(&parent).into_iter().flat_map(|list| list.entries().map(|(_, id)| id))
    }

    pub fn child_count(&self, parent: Option<TaskId>) -> usize {
        self.children.get(&parent).map_or(0, SiblingList::len)
    }

    /// The tasks that contain a task, the innermost first.
    pub fn ancestors(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        std::iter::successors(self.parent(id), |id| self.parent(*id))
    }

    fn parent(&self, id: TaskId) -> Option<TaskId> {
        self.nodes.get(&id).and_then(|node| node.task.parent)
    }

    /// The tasks that depend on a task, by id.
    pub fn dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.dependents.get(&id).into_iter().flatten().copied()
    }

    /// A task and everything in it, each before its children.
    pub fn subtree(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(vec![id])
    }

    /// All tasks, each before its children.
    pub fn all(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.walk(self.children(None).rev().collect())
    }

    /// All tasks, each after what it contains; siblings in their order.
    pub(crate) fn children_first(&self) -> Vec<TaskId> {
        let mut order = Vec::with_capacity(self.len());
        // The tasks whose children are being listed.
        let mut open: Vec<TaskId> = Vec::new();
        for id in self.all() {
            let parent = self.task(id).and_then(|task| task.parent);
            while let Some(last) = open.pop_if(|last| Some(*last) != parent) {
                order.push(last);
            }
            open.push(id);
        }
        order.extend(open.into_iter().rev());
        order
    }

    fn walk(&self, mut stack: Vec<TaskId>) -> impl Iterator<Item = TaskId> + '_ {
        std::iter::from_fn(move || {
            let id = stack.pop()?;
            stack.extend(self.children(Some(id)).rev());
            Some(id)
        })
    }

    /// The level of a task; a root is on level 1.
    pub fn level(&self, id: TaskId) -> usize {
        self.ancestors(id).count().saturating_add(1)
    }

    /// The names from the root to the task: `Chapter 1 / Introduction`.
    pub fn path(&self, id: TaskId) -> String {
        let mut ids: Vec<TaskId> = self.ancestors(id).collect();
        ids.reverse();
        ids.push(id);
        let names: Vec<&str> = ids.iter().filter_map(|id| self.task(*id)).map(|task| task.name.as_str()).collect();
        names.join(" / ")
    }

    pub(crate) fn names(&self) -> &NameIndex {
        &self.names
    }

    /// Changes what the plan is for.
    pub(crate) fn change_head(&mut self, change: impl FnOnce(&mut PlanHead)) {
        self.changes.head_before.get_or_insert_with(|| self.head.clone());
        change(&mut self.head);
    }

    /// Adds a task at a position among the children of its parent.
    pub(crate) fn insert(&mut self, task: PlanTask, position: usize) {
        let rank = self.rank_at(task.parent, position);
        self.changes.keep(task.id, self.nodes.get(&task.id));
        self.attach(TaskNode { task, rank });
    }

    /// Changes a task, but not its id and its parent.
    pub(crate) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut PlanTask)) {
        let Some(mut task) = self.task(id).cloned() else { return };
        change(&mut task);
        task.updated_at.clone_from(&self.now);
        self.replace(task);
    }

    /// Replaces the task with this id by one with the same parent.
    pub(crate) fn replace(&mut self, task: PlanTask) {
        let id = task.id;
        self.changes.keep(id, self.nodes.get(&id));
        if let Some(TaskNode { rank, .. }) = self.detach(id) {
            self.attach(TaskNode { task, rank });
        }
    }

    /// Moves a task to a position among the children of a parent, counted without the task itself.
    pub(crate) fn move_to(&mut self, id: TaskId, parent: Option<TaskId>, position: usize) {
        self.changes.keep(id, self.nodes.get(&id));
        let Some(mut node) = self.detach(id) else { return };
        node.task.parent = parent;
        node.task.updated_at.clone_from(&self.now);
        node.rank = self.rank_at(parent, position);
        self.attach(node);
    }

    /// Removes a task that has no children and on which none depends.
    pub(crate) fn remove(&mut self, id: TaskId) {
        self.changes.keep(id, self.nodes.get(&id));
        self.detach(id);
    }

    /// A rank for a task that is to have this position, which may change those of others.
    fn rank_at(&mut self, parent: Option<TaskId>, position: usize) -> i64 {
        let list = self.children.entry(parent).or_default();
        let position = position.min(list.len());
        if let Some(rank) = list.rank_at(position) {
            return rank;
        }
        for (id, rank) in list.spread(position) {
            if let Some(node) = self.nodes.get_mut(&id) {
                self.changes.keep(id, Some(node));
                list.remove(node.rank, id);
                node.rank = rank;
                list.insert(rank, id);
            }
        }
        list.rank_at(position).unwrap_or_default()
    }

    /// Adds a task to the tree and its indexes.
    pub(crate) fn attach(&mut self, node: TaskNode) {
        let id = node.task.id;
        self.children.entry(node.task.parent).or_default().insert(node.rank, id);
        self.names.insert(&node.task.name, id);
        for dependency in &node.task.dependencies {
            self.dependents.entry(*dependency).or_default().insert(id);
        }
        self.counts.add(node.task.status);
        self.nodes.insert(id, node);
    }

    /// Takes a task out of the tree and its indexes.
    fn detach(&mut self, id: TaskId) -> Option<TaskNode> {
        let node = self.nodes.remove(&id)?;
        if let Some(list) = self.children.get_mut(&node.task.parent) {
            list.remove(node.rank, id);
            if list.len() == 0 {
                self.children.remove(&node.task.parent);
            }
        }
        self.names.remove(&node.task.name, id);
        for dependency in &node.task.dependencies {
            if let Some(dependents) = self.dependents.get_mut(dependency) {
                dependents.remove(&id);
                if dependents.is_empty() {
                    self.dependents.remove(dependency);
                }
            }
        }
        self.counts.subtract(node.task.status);
        Some(node)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &TaskNode> {
        self.nodes.values()
    }

    /// Whether something has changed since the last accepted edit.
    pub fn is_changed(&self) -> bool {
        self.changed_tasks().next().is_some()
            || self.changes.head_before.as_ref().is_some_and(|before| *before != self.head)
    }

    /// The tasks that have changed: each with what it is now; none for one that was removed.
    pub(crate) fn changed_tasks(&self) -> impl Iterator<Item = (TaskId, Option<&TaskNode>)> {
        let changed = self.changes.before.iter().map(|(id, before)| (*id, before.as_ref(), self.nodes.get(id)));
        changed.filter(|(_, before, now)| before != now).map(|(id, _, now)| (id, now))
    }

    /// Undoes all changes since the last accepted edit.
    pub(crate) fn roll_back(&mut self) {
        let ChangeLog { before, head_before } = std::mem::take(&mut self.changes);
        for id in before.keys() {
            self.detach(*id);
        }
        before.into_values().flatten().for_each(|node| self.attach(node));
        if let Some(head) = head_before {
            self.head = head;
        }
    }

    /// The changes are stored as this revision.
    pub(crate) fn accept(&mut self, revision: u64) {
        self.changes = ChangeLog::default();
        self.revision = revision;
    }

    /// Whether the indexes are as those of a tree that is built anew, every task has an existing parent and existing dependencies,
    /// and the tasks form a tree. For tests.
    #[doc(hidden)]
    pub fn is_consistent(&self) -> bool {
        let mut rebuilt = Self::new(self.id, &self.user, self.head.clone());
        self.nodes.values().cloned().for_each(|node| rebuilt.attach(node));
        let reached: HashSet<TaskId> = self.all().collect();
        let sorted =
            |tree: &Self| -> BTreeMap<TaskId, BTreeSet<TaskId>> { tree.dependents.clone().into_iter().collect() };
        reached.len() == self.nodes.len()
            && self.all().count() == self.nodes.len()
            && self.children == rebuilt.children
            && self.names == rebuilt.names
            && sorted(self) == sorted(&rebuilt)
            && self.counts == rebuilt.counts
            && self.dependents.keys().all(|id| self.nodes.contains_key(id))
            && self.all().all(|id| self.position(id).is_some_and(|at| self.child_at(self.parent(id), at) == Some(id)))
    }

    pub(crate) fn child_at(&self, parent: Option<TaskId>, position: usize) -> Option<TaskId> {
        self.children.get(&parent)?.get(position).map(|(_, id)| id)
    }
}
