//! What has to happen before what. A task starts after the task that contains it has started and after the tasks on which it depends
//! have ended; it ends after its children have ended. So the dependencies of a task hold for everything in it, and a task can collect
//! what its children gave.

use std::collections::{HashMap, HashSet};

use bcc_lang::message::message::Message;

use crate::plan::error::OperationError;
use crate::plan::task::{TaskId, TaskStatus};
use crate::plan::tree::PlanTree;

/// The maximum number of tasks that are named in a circle.
const MAX_IN_CIRCLE: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Moment {
    Start(TaskId),
    End(TaskId),
}

impl Moment {
    const fn task(self) -> TaskId {
        match self {
            Self::Start(id) | Self::End(id) => id,
        }
    }
}

type Moments<'a> = Box<dyn Iterator<Item = Moment> + 'a>;

/// What must have happened before a moment. The task `cut` is regarded as if it were in no other task.
fn needed(tree: &PlanTree, moment: Moment, cut: Option<TaskId>) -> Moments<'_> {
    match moment {
        Moment::Start(id) => {
            let Some(task) = tree.task(id) else { return Box::new(std::iter::empty()) };
            let parent = task.parent.filter(|_| cut != Some(id));
            let dependencies = task.dependencies.iter().map(|dependency| Moment::End(*dependency));
            Box::new(parent.map(Moment::Start).into_iter().chain(dependencies))
        }
        Moment::End(id) => {
            let children = tree.children(Some(id)).filter(move |child| cut != Some(*child));
            Box::new(std::iter::once(Moment::Start(id)).chain(children.map(Moment::End)))
        }
    }
}

/// What cannot happen before a moment. `cut` as of [`needed`].
fn enabled(tree: &PlanTree, moment: Moment, cut: Option<TaskId>) -> Moments<'_> {
    match moment {
        Moment::Start(id) => {
            let children = tree.children(Some(id)).filter(move |child| cut != Some(*child));
            Box::new(std::iter::once(Moment::End(id)).chain(children.map(Moment::Start)))
        }
        Moment::End(id) => {
            let parent = tree.task(id).and_then(|task| task.parent).filter(|_| cut != Some(id));
            Box::new(parent.map(Moment::End).into_iter().chain(tree.dependents(id).map(Moment::Start)))
        }
    }
}

/// [`needed`] or [`enabled`].
type Neighbours = fn(&PlanTree, Moment, Option<TaskId>) -> Moments<'_>;

/// A search in one direction, one step at a time.
struct Search<'a> {
    tree: &'a PlanTree,
    next: Neighbours,
    cut: Option<TaskId>,
    target: Moment,
    /// From where each moment was reached.
    reached_from: HashMap<Moment, Moment>,
    stack: Vec<(Moment, Moments<'a>)>,
}

enum Step {
    Found,
    Continues,
    Exhausted,
}

impl<'a> Search<'a> {
    fn new(tree: &'a PlanTree, next: Neighbours, cut: Option<TaskId>, (from, target): (Moment, Moment)) -> Self {
        let stack = vec![(from, next(tree, from, cut))];
        Self { tree, next, cut, target, reached_from: HashMap::from([(from, from)]), stack }
    }

    fn step(&mut self) -> Step {
        let Some((from, moments)) = self.stack.last_mut() else { return Step::Exhausted };
        let from = *from;
        let Some(moment) = moments.next() else {
            self.stack.pop();
            return Step::Continues;
        };
        if self.reached_from.contains_key(&moment) {
            return Step::Continues;
        }
        self.reached_from.insert(moment, from);
        if moment == self.target {
            return Step::Found;
        }
        self.stack.push((moment, (self.next)(self.tree, moment, self.cut)));
        Step::Continues
    }

    /// The tasks from the target back to where the search started.
    fn path(&self) -> Vec<TaskId> {
        let mut path = vec![self.target.task()];
        let mut moment = self.target;
        while let Some(from) = self.reached_from.get(&moment).filter(|from| **from != moment) {
            moment = *from;
            if path.last() != Some(&moment.task()) {
                path.push(moment.task());
            }
        }
        path
    }
}

/// The tasks from the one of `late` to the one of `early`, if `late` needs `early`. Both directions are searched in turns: often one
/// of them ends soon, even if the other would visit the whole plan.
fn way(tree: &PlanTree, late: Moment, early: Moment, cut: Option<TaskId>) -> Option<Vec<TaskId>> {
    if late == early {
        return Some(vec![late.task()]);
    }
    let mut down = Search::new(tree, needed, cut, (late, early));
    let mut up = Search::new(tree, enabled, cut, (early, late));
    loop {
        match down.step() {
            Step::Found => {
                let mut path = down.path();
                path.reverse();
                return Some(path);
            }
            Step::Exhausted => return None,
            Step::Continues => {}
        }
        match up.step() {
            Step::Found => return Some(up.path()),
            Step::Exhausted => return None,
            Step::Continues => {}
        }
    }
}

fn circle(mut path: Vec<TaskId>) -> OperationError {
    if path.first() != path.last() || path.len() == 1 {
        path.extend(path.first().copied());
    }
    let mut names: Vec<String> = path.iter().take(MAX_IN_CIRCLE).map(TaskId::to_string).collect();
    if path.len() > MAX_IN_CIRCLE {
        names.push("…".to_owned());
        names.extend(path.last().map(TaskId::to_string));
    }
    OperationError::CircularDependency { circle: Message::text(names.join(" → ")) }
}

impl PlanTree {
    /// Checks the dependencies that a task has.
    /// Errors: [`OperationError::CircularDependency`].
    pub(crate) fn check_dependencies(&self, id: TaskId) -> Result<(), OperationError> {
        let dependencies = self.existing(id)?.dependencies.iter();
        for dependency in dependencies {
            if let Some(mut path) = way(self, Moment::End(*dependency), Moment::Start(id), None) {
                path.insert(0, id);
                path.dedup();
                return Err(circle(path));
            }
        }
        Ok(())
    }

    /// Checks whether a task can be moved into another one, in which it is not yet and which it does not contain.
    ///
    /// There was no circle before, so a new one leads through one of the two new requirements: the task starts after the
    /// parent, and the parent ends after the task. What leads back is found without these: a task on which nothing depends, and that
    /// depends on nothing, is found at once.
    /// Errors: [`OperationError::CircularDependency`].
    pub(crate) fn check_place(&self, id: TaskId, parent: TaskId) -> Result<(), OperationError> {
        let found = way(self, Moment::Start(parent), Moment::Start(id), Some(id))
            .or_else(|| way(self, Moment::End(id), Moment::End(parent), Some(id)));
        found.map_or(Ok(()), |path| Err(circle(path)))
    }

    /// Checks all dependencies.
    /// Errors: [`OperationError::CircularDependency`].
    pub(crate) fn check_all_dependencies(&self) -> Result<(), OperationError> {
        // The moments that need nothing, then those that need only what came before.
        let mut open: HashMap<Moment, usize> = HashMap::new();
        let mut ready = Vec::new();
        for moment in self.all().flat_map(|id| [Moment::Start(id), Moment::End(id)]) {
            let count = needed(self, moment, None).count();
            if count == 0 {
                ready.push(moment);
            }
            open.insert(moment, count);
        }
        while let Some(moment) = ready.pop() {
            open.remove(&moment);
            for next in enabled(self, moment, None) {
                if let Some(count) = open.get_mut(&next) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        ready.push(next);
                    }
                }
            }
        }
        // Going back from any of the rest leads into a circle.
        let Some(mut moment) = open.keys().copied().min_by_key(|moment| moment.task()) else { return Ok(()) };
        let mut path: Vec<Moment> = Vec::new();
        let mut seen = HashSet::new();
        while seen.insert(moment) {
            path.push(moment);
            let Some(next) = needed(self, moment, None).find(|next| open.contains_key(next)) else { break };
            moment = next;
        }
        let start = path.iter().position(|other| *other == moment).unwrap_or(0);
        let mut tasks: Vec<TaskId> = path.iter().skip(start).map(|moment| moment.task()).collect();
        tasks.dedup();
        Err(circle(tasks))
    }

    /// The tasks that have to end before a task can run: those on which it, or a task that contains it, depends, and its children. At
    /// most `limit`.
    pub fn waits_for(&self, id: TaskId, limit: usize) -> Vec<TaskId> {
        let containing = std::iter::once(id).chain(self.ancestors(id));
        let dependencies = containing.filter_map(|id| self.task(id)).flat_map(|task| task.dependencies.iter().copied());
        let needed = dependencies.chain(self.children(Some(id)));
        let is_open = |id: &TaskId| self.task(*id).is_some_and(|task| !task.status.is_over());
        let mut waiting = Vec::new();
        for id in needed.filter(is_open).take(limit) {
            if !waiting.contains(&id) {
                waiting.push(id);
            }
        }
        waiting
    }

    /// Whether a task is pending and nothing has to end before it can run.
    pub fn is_ready(&self, id: TaskId) -> bool {
        self.task(id).is_some_and(|task| task.status == TaskStatus::Pending) && self.waits_for(id, 1).is_empty()
    }

    /// The tasks that can run, at most `limit`, in the order of the tree. Visits all tasks; see also [`PlanTree::ready_after`].
    pub fn ready(&self, limit: usize) -> Vec<TaskId> {
        self.all().filter(|id| self.is_ready(*id)).take(limit).collect()
    }

    /// The tasks that can run because a task has ended, at most `limit`: of those that depend on it and what is in them, and the task
    /// that contains it.
    pub fn ready_after(&self, id: TaskId, limit: usize) -> Vec<TaskId> {
        let dependents = self.dependents(id).flat_map(|dependent| self.subtree(dependent));
        let parent = self.task(id).and_then(|task| task.parent);
        let mut ready = Vec::new();
        for id in dependents.chain(parent).filter(|id| self.is_ready(*id)) {
            if ready.len() < limit && !ready.contains(&id) {
                ready.push(id);
            }
        }
        ready
    }

    /// Everything that needs the end of a task: the tasks that depend on it, what is in those, the tasks that contain it, and what
    /// depends on all of these. Sorted by id, without the task itself.
    pub fn all_dependents(&self, id: TaskId) -> Vec<TaskId> {
        let mut found = HashSet::new();
        let mut stack = vec![Moment::End(id)];
        let mut reached: HashSet<Moment> = HashSet::new();
        while let Some(moment) = stack.pop() {
            for next in enabled(self, moment, None) {
                if reached.insert(next) {
                    found.insert(next.task());
                    stack.push(next);
                }
            }
        }
        found.remove(&id);
        let mut ids: Vec<TaskId> = found.into_iter().collect();
        ids.sort_unstable();
        ids
    }
}
