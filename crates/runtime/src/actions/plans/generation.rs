//! Makes tasks with a model: the first level of a new plan, and the tasks into which others are divided, breadth first. Each task is
//! divided in a turn of its own, so that a session that is killed goes on with the next one.

use std::collections::{BTreeSet, VecDeque};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::quoting::{quote, quote_after_label};
use bcc_llm::reply::read::Reply;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::plans::bound::bind;
use crate::actions::plans::edits::{
    NumberParameter, OperationOutcome, PlanParameters, RejectedOperation, announce, announce_named, rejection,
};
use crate::actions::plans::prompts::{CREATE, DECOMPOSE, PlanPrompts};
use crate::plan::create::create;
use crate::plan::error::OperationError;
use crate::plan::operation::{NewTask, ParentReference, TaskPlacement, TaskReference};
use crate::plan::task::{PlanHead, PlanId, TaskId};
use crate::plan::tree::{PlanTree, TaskIds};
use crate::program::flow::ActionError;
use crate::program::turn::Turn;

/// The maximum number of tasks that one reply adds.
const MAX_CHILDREN: usize = 12;

/// The defaults of `expand_depth` and `node_budget`.
const DEFAULT_EXPAND_DEPTH: u64 = 1;
const DEFAULT_NODE_BUDGET: u64 = 50;

/// The maximum length of a name and of an instruction that is taken from a reply, in characters.
const MAX_NAME_CHARS: usize = 200;
const MAX_INSTRUCTION_CHARS: usize = 20_000;

/// The maximum length of the outline in a prompt, in characters.
const MAX_OUTLINE_CHARS: usize = 4_000;

/// The maximum number of problems that a result lists.
const MAX_PROBLEMS: usize = 10;

/// Creates a plan with its first level of tasks.
///
/// # Errors
/// The model or the store cannot be used. What is wrong with the operation is its outcome.
pub(crate) async fn create_plan(
    turn: &Turn<'_>,
    prompts: &PlanPrompts,
    parameters: &Map<String, Value>,
    key: &str,
) -> Result<OperationOutcome, ActionError> {
    let read = || -> Result<_, RejectedOperation> {
        let known = PlanParameters::new("create_plan", parameters, &["goal", "title", "notes", "sections", "style"])?;
        let texts = (known.required_text("goal")?, known.text("title")?, known.text("notes")?, known.text("style")?);
        Ok((texts, known.any("sections")))
    };
    let ((goal, title, notes, style), sections) = match read() {
        Ok(read) => read,
        Err(refused) => return Ok(Err(refused)),
    };
    let mut names = turn.names(1);
    let shown = |text: &Option<String>| text.as_deref().map(|text| quote(text).into_owned()).unwrap_or_default();
    names.set_text("title", shown(&title));
    names.set_text("notes", shown(&notes));
    names.set_text("style", shown(&style));
    names.set_text("sections", shown(&sections.as_ref().map(sections_text)));
    names.set("max_tasks", json!(MAX_CHILDREN));
    let Some(reply) = prompts.ask(turn, CREATE, &quote_after_label(&goal), None, names).await? else {
        return Ok(Err(RejectedOperation::failure("the model gave no plan that could be read")));
    };
    let drafts = TaskDrafts::of(&reply, MAX_CHILDREN);
    if drafts.tasks.is_empty() {
        return Ok(Err(RejectedOperation::failure("the model gave a plan without tasks")));
    }
    let from_reply =
        || reply.object.get("title").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let title = title.or_else(|| from_reply().map(str::to_owned)).unwrap_or_else(|| goal.clone());
    let at = turn.services.clock.at(turn.last_seq + 1);
    let head = PlanHead {
        title: cut(&title, MAX_NAME_CHARS),
        goal,
        notes,
        style,
        sections,
        session_id: turn.session_id.to_owned(),
        workflow_id: turn.program.id.clone(),
        created_at: at.clone(),
        updated_at: at,
        ..PlanHead::default()
    };
    let created = turn.plans.create(key, head, |tree, ids| drafts.add(tree, None, ids)).await;
    let (plan, tasks) = match created {
        Ok(created) => created,
        Err(error) => return Ok(Err(rejection(&error))),
    };
    announce_named(turn, (plan, "create_plan"), Some(title.clone()), None, None);
    bind(turn, plan).await?;
    let mut result = json!({ "plan_id": plan, "title": title, "tasks": tasks });
    note_problems(&mut result, &drafts.problems);
    Ok(Ok(result))
}

/// The sections as a model reads them: a list line by line.
fn sections_text(sections: &Value) -> String {
    match sections {
        Value::String(text) => text.clone(),
        Value::Array(items) => items
            .iter()
            .map(|item| format!("- {}", item.as_str().map_or_else(|| item.to_string(), str::to_owned)))
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    }
}

/// A task that is to be divided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pending {
    /// None for the plan as a whole.
    task: Option<TaskId>,
    /// The level of its children below the task where the division began.
    depth: u64,
}

/// The division of tasks, between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Generation {
    plan: PlanId,
    /// The tasks that are to be divided, in their order.
    pending: VecDeque<Pending>,
    expand_depth: u64,
    /// How many tasks may still be added.
    left: u64,
    /// How many tasks were divided or examined.
    examined: u64,
    added: u64,
    problems: Vec<String>,
}

/// How a division goes on.
pub(crate) enum GenerationStep {
    /// With another turn.
    Onward,
    Ended(OperationOutcome),
}

impl Generation {
    /// Reads `decompose_task`.
    ///
    /// # Errors
    /// The store cannot be used. What is wrong with the operation is the inner result.
    pub(crate) async fn start(
        turn: &Turn<'_>,
        bound: Option<PlanId>,
        parameters: &Map<String, Value>,
    ) -> Result<Result<Self, RejectedOperation>, ActionError> {
        let known = ["plan_id", "task_id", "expand_depth", "node_budget"];
        let read = || -> Result<_, RejectedOperation> {
            let known = PlanParameters::new("decompose_task", parameters, &known)?;
            let expand_depth = known.number(&NumberParameter::DEPTH)?.unwrap_or(DEFAULT_EXPAND_DEPTH);
            let left = known.number(&NumberParameter::BUDGET)?.unwrap_or(DEFAULT_NODE_BUDGET);
            Ok((known.number(&NumberParameter::TASK)?, expand_depth, left, known.plan(bound)))
        };
        let (task, expand_depth, left, plan) = match read() {
            Ok(read) => read,
            Err(refused) => return Ok(Err(refused)),
        };
        let plan = match task {
            Some(task) => turn.plans.plan_of_task(task).await.map_err(|error| rejection(&error)),
            None => plan,
        };
        let plan = match plan {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(refused)),
        };
        let roots = turn.plans.with_tree(plan, |tree| tree.children(None).collect::<Vec<_>>()).await;
        let roots = match roots {
            Ok(roots) => roots,
            Err(error) => return Ok(Err(rejection(&error))),
        };
        let first = |task| Pending { task, depth: 1 };
        let pending: VecDeque<Pending> = match task {
            Some(task) => VecDeque::from([first(Some(task))]),
            None if roots.is_empty() => VecDeque::from([first(None)]),
            None => roots.into_iter().map(|root| first(Some(root))).collect(),
        };
        Ok(Ok(Self { plan, pending, expand_depth, left, ..Self::default() }))
    }

    /// Divides the next task.
    ///
    /// # Errors
    /// The model or the store cannot be used.
    pub(crate) async fn proceed(
        &mut self,
        turn: &Turn<'_>,
        prompts: &PlanPrompts,
        key: &str,
    ) -> Result<GenerationStep, ActionError> {
        let Some(next) = self.pending.pop_front().filter(|_| self.left > 0) else {
            return Ok(GenerationStep::Ended(Ok(self.result())));
        };
        let described = turn.plans.with_tree(self.plan, |tree| describe(tree, next.task)).await;
        let described = match described {
            Ok(described) => described,
            Err(error) => return Ok(GenerationStep::Ended(Err(rejection(&error)))),
        };
        // A task that was deleted meanwhile needs no division, and one that has tasks already keeps them.
        let Some((content, outline, children)) = described else { return Ok(GenerationStep::Onward) };
        if !children.is_empty() {
            self.go_deeper(next, children);
            return Ok(GenerationStep::Onward);
        }
        let limit = MAX_CHILDREN.min(usize::try_from(self.left).unwrap_or(MAX_CHILDREN));
        let mut names = turn.names(1);
        names.set_text("plan_outline", &*quote(&outline));
        names.set("max_tasks", json!(limit));
        self.examined += 1;
        let Some(reply) = prompts.ask(turn, DECOMPOSE, &quote_after_label(&content), None, names).await? else {
            let about = next.task.map_or_else(|| self.plan.to_string(), |task| task.to_string());
            self.note(msg!("the model gave no tasks for {about} that could be read").to_string());
            let is_all = self.added == 0 && self.pending.is_empty();
            return Ok(match is_all {
                true => {
                    GenerationStep::Ended(Err(RejectedOperation::failure("the model gave no tasks that could be read")))
                }
                false => GenerationStep::Onward,
            });
        };
        let drafts = TaskDrafts::of(&reply, limit);
        drafts.problems.iter().for_each(|problem| self.note(problem.to_string()));
        if drafts.tasks.is_empty() {
            return Ok(GenerationStep::Onward);
        }
        let at = turn.services.clock.at(turn.last_seq + 1);
        let key = format!("{key}#{}", self.examined);
        let added = turn.plans.edit(self.plan, &key, &at, |tree, ids| drafts.add(tree, next.task, ids)).await;
        let added = match added {
            Ok(added) => added,
            Err(error) => return Ok(GenerationStep::Ended(Err(rejection(&error)))),
        };
        announce(turn, self.plan, "decompose_task", next.task, None);
        bind(turn, self.plan).await?;
        let ids: Vec<TaskId> =
            added.as_array().into_iter().flatten().filter_map(|task| task.get("task_id")?.as_u64()).collect();
        let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(count);
        self.added = self.added.saturating_add(count);
        self.go_deeper(next, ids);
        Ok(GenerationStep::Onward)
    }

    /// The children are divided after everything on the level of their parent.
    fn go_deeper(&mut self, parent: Pending, children: Vec<TaskId>) {
        if parent.depth < self.expand_depth {
            let depth = parent.depth + 1;
            self.pending.extend(children.into_iter().map(|task| Pending { task: Some(task), depth }));
        }
    }

    fn note(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    fn result(&self) -> Value {
        let mut result = Map::new();
        result.insert("plan_id".into(), json!(self.plan));
        result.insert("added".into(), json!(self.added));
        result.insert("examined".into(), json!(self.examined));
        result.insert("budget_left".into(), json!(self.left));
        // Those that the budget did not reach.
        let open: Vec<TaskId> = self.pending.iter().filter_map(|pending| pending.task).take(MAX_PROBLEMS).collect();
        if self.left == 0 && !open.is_empty() {
            result.insert("not_examined".into(), json!(open));
        }
        if !self.problems.is_empty() {
            result.insert("problems".into(), json!(self.problems));
        }
        Value::Object(result)
    }
}

/// What the model must know of a task: its text, the outline of the plan, and its children. None if it does not exist.
fn describe(tree: &PlanTree, task: Option<TaskId>) -> Option<(String, String, Vec<TaskId>)> {
    let outline = tree.outline(MAX_OUTLINE_CHARS);
    let children = tree.children(task).collect();
    let content = match task {
        Some(id) => {
            let task = tree.task(id)?;
            format!("{}\n{}", task.name, task.instruction).trim().to_owned()
        }
        None => tree.head().goal.clone(),
    };
    Some((content, outline, children))
}

fn note_problems(result: &mut Value, problems: &[Message]) {
    if let (Some(fields), false) = (result.as_object_mut(), problems.is_empty()) {
        let texts = problems.iter().take(MAX_PROBLEMS).map(Message::to_string);
        fields.insert("problems".to_owned(), texts.collect());
    }
}

/// A task as a model wrote it, with the numbers of those in the same reply that come before it.
#[derive(Clone, Debug, Default, PartialEq)]
struct TaskDraft {
    name: String,
    instruction: String,
    task_type: Option<String>,
    after: Vec<usize>,
}

/// The tasks of a reply, and what was left out of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct TaskDrafts {
    tasks: Vec<TaskDraft>,
    problems: Vec<Message>,
}

impl TaskDrafts {
    /// Reads the tasks of a reply as the model wrote them: in the coerced reply, one wrong entry would empty the list.
    fn of(reply: &Reply, limit: usize) -> Self {
        let received = reply.received.get("tasks");
        match received.is_some_and(Value::is_array) {
            true => Self::read(received, limit),
            false => {
                let mut read = Self::read(reply.object.get("tasks"), limit);
                if read.tasks.is_empty() && received.is_some_and(|tasks| !tasks.is_null()) {
                    read.problems.push(Message::word("the tasks were left out: they are not in a list"));
                }
                read
            }
        }
    }

    /// Reads at most `limit` tasks. What is wrong is left out and noted; the rest stays.
    fn read(tasks: Option<&Value>, limit: usize) -> Self {
        let mut read = Self::default();
        let mut wanted: Vec<Vec<String>> = Vec::new();
        let mut seen = BTreeSet::new();
        for item in tasks.and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| item.get(field).and_then(Value::as_str).map(str::trim).unwrap_or_default();
            let name = cut(text("name"), MAX_NAME_CHARS);
            if name.is_empty() {
                read.problems.push(Message::word("a task without a name was left out"));
                continue;
            }
            if !seen.insert(name.to_lowercase()) {
                read.problems.push(msg!("the task {name:?} was listed twice"));
                continue;
            }
            if read.tasks.len() >= limit {
                read.problems.push(msg!("the limit of {limit} new tasks was reached; the others were left out"));
                break;
            }
            let is_text = |field: &&str| item.get(*field).is_none_or(|value| value.is_string() || value.is_null());
            for field in ["instruction", "task_type"].iter().filter(|field| !is_text(field)) {
                read.problems.push(msg!("the `{field}` of the task {name:?} was left out: it is no text"));
            }
            wanted.push(read.wanted_by(&name, item.get("depends_on")));
            read.tasks.push(TaskDraft {
                name,
                instruction: cut(text("instruction"), MAX_INSTRUCTION_CHARS),
                task_type: Some(cut(text("task_type"), 50)).filter(|text| !text.is_empty()),
                after: vec![],
            });
        }
        read.set_dependencies(&wanted);
        read
    }

    /// The names of the tasks on which a task depends.
    fn wanted_by(&mut self, name: &str, depends_on: Option<&Value>) -> Vec<String> {
        let listed = match depends_on {
            None | Some(Value::Null) => &[],
            Some(Value::Array(listed)) => listed.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let (names, others): (Vec<_>, Vec<_>) = listed.iter().partition(|name| name.is_string());
        if !others.is_empty() {
            self.problems.push(msg!("a dependency of the task {name:?} was left out: it is no name"));
        }
        names.into_iter().filter_map(Value::as_str).map(|name| name.trim().to_lowercase()).collect()
    }

    fn set_dependencies(&mut self, wanted: &[Vec<String>]) {
        let names: Vec<String> = self.tasks.iter().map(|task| task.name.to_lowercase()).collect();
        for (number, after) in wanted.iter().enumerate() {
            for name in after {
                match names.iter().position(|other| other == name) {
                    None => {
                        self.problems.push(msg!("the dependency on {name:?} was left out: there is no such task here"))
                    }
                    Some(other) if other == number || self.needs(other, number) => {
                        self.problems
                            .push(msg!("the dependency on {name:?} was left out: the tasks would wait for each other"));
                    }
                    Some(other) => {
                        if let Some(task) = self.tasks.get_mut(number).filter(|task| !task.after.contains(&other)) {
                            task.after.push(other);
                        }
                    }
                }
            }
        }
    }

    /// Whether the task `number` needs the task `other`.
    fn needs(&self, number: usize, other: usize) -> bool {
        let mut stack = vec![number];
        let mut seen = BTreeSet::new();
        while let Some(next) = stack.pop() {
            if next == other {
                return true;
            }
            if seen.insert(next) {
                stack.extend(self.tasks.get(next).into_iter().flat_map(|task| &task.after));
            }
        }
        false
    }

    /// The order in which the tasks can be added: each after those on which it depends.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::with_capacity(self.tasks.len());
        while order.len() < self.tasks.len() {
            let is_next = |number: &usize| {
                !order.contains(number)
                    && self.tasks.get(*number).is_some_and(|task| task.after.iter().all(|after| order.contains(after)))
            };
            let Some(next) = (0..self.tasks.len()).find(is_next) else { break };
            order.push(next);
        }
        order
    }

    /// Adds the tasks as children of `parent`, in their order. Returns their numbers and names.
    fn add(&self, tree: &mut PlanTree, parent: Option<TaskId>, ids: &mut dyn TaskIds) -> Result<Value, OperationError> {
        let first = tree.child_count(parent);
        let mut added: Vec<Option<TaskId>> = vec![None; self.tasks.len()];
        for number in self.order() {
            let Some(draft) = self.tasks.get(number) else { continue };
            // Among the siblings that were added before it, it stands where the model wrote it.
            let before = added.iter().take(number).flatten().count();
            let new = NewTask {
                name: draft.name.clone(),
                parent: parent.map_or(ParentReference::Root, |id| ParentReference::Task(TaskReference::Id(id))),
                task_type: draft.task_type.clone(),
                instruction: draft.instruction.clone(),
                dependencies: draft.after.iter().filter_map(|after| added.get(*after).copied().flatten()).collect(),
                place: TaskPlacement { position: u64::try_from(first + before).ok(), ..Default::default() },
                ..NewTask::default()
            };
            let (id, _) = create(tree, &new, ids)?;
            if let Some(slot) = added.get_mut(number) {
                *slot = Some(id);
            }
        }
        let named =
            self.tasks.iter().zip(added).filter_map(|(draft, id)| Some(json!({ "task_id": id?, "name": draft.name })));
        Ok(named.collect())
    }
}

/// The first characters of a text.
fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_wrong_are_left_out_and_named() {
        let tasks = json!([
            { "name": " A ", "instruction": "do", "depends_on": ["c"] },
            { "name": "" }, { "name": "a" }, 7,
            { "name": "B", "depends_on": ["A", "A", "x", "B"] },
            { "name": "C", "depends_on": ["B"] },
            { "name": "D" },
        ]);
        let read = TaskDrafts::read(Some(&tasks), 3);
        let names: Vec<(&str, &[usize])> =
            read.tasks.iter().map(|task| (task.name.as_str(), task.after.as_slice())).collect();
        assert_eq!(names, [("A", &[2][..]), ("B", &[0][..]), ("C", &[][..])]);
        let problems: Vec<String> = read.problems.iter().map(Message::to_string).collect();
        assert_eq!(problems.len(), 7, "{problems:#?}");
        assert_eq!(read.order(), [2, 0, 1]);
        assert_eq!(TaskDrafts::read(None, 3), TaskDrafts::default());
        assert_eq!(TaskDrafts::read(Some(&json!("x")), 3), TaskDrafts::default());
    }
}
