//! The prompts with which plans are made and their tasks are run.

use std::sync::Arc;

use bcc_lang::script::fields::Fields;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::template::names::TemplateNames;
use bcc_llm::reply::read::Reply;
use bcc_llm::reply::shape::ReplyShape;
use serde_json::Value;

use crate::actions::plans::task::PlanTaskAction;
use crate::program::exchange::{Ask, PROMPT_NAMES};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::outcome::ExitReason;
use crate::program::output::Outputs;
use crate::program::program::{ProgramStep, ProgramSteps};
use crate::program::prompt::PromptNames;
use crate::program::route_table::{Route, RouteTable};
use crate::program::turn::Turn;

/// The prompt that makes a plan.
pub(crate) const CREATE: &str = "plan_create";

/// The prompt that divides a task.
pub(crate) const DECOMPOSE: &str = "plan_decompose";

/// The prompt that runs a task.
pub(crate) const TASK: &str = "plan_task";

const fn names(names: &'static [&'static str]) -> PromptNames {
    PromptNames { common: &PROMPT_NAMES, names, outputs: false }
}

/// All of them, in the form that a kind returns.
pub(crate) const PLAN_PROMPTS: [(&str, PromptNames); 3] = [
    (CREATE, names(&["title", "sections", "style", "notes", "max_tasks"])),
    (DECOMPOSE, names(&["plan_outline", "max_tasks"])),
    (TASK, names(&["plan_goal", "style", "inputs"])),
];

/// The version of these prompts.
const VERSION: u32 = 1;

/// The shapes of their replies.
#[derive(Clone)]
pub(crate) struct PlanPrompts {
    create: ReplyShape,
    decompose: ReplyShape,
    task: ReplyShape,
    /// The outputs of the author: always empty.
    outputs: Arc<Outputs>,
}

impl PlanPrompts {
    /// Checks the templates and the schemas. Their problems are reported.
    pub(crate) fn read(fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Self> {
        for (name, prompt) in PLAN_PROMPTS {
            checker.template(name, VERSION, prompt, fields);
        }
        let mut shape = |name| {
            let base = checker.reply_schema(name, VERSION, fields)?;
            ReplyShape::with_base(&base, vec![]).ok()
        };
        let (create, decompose, task) = (shape(CREATE)?, shape(DECOMPOSE)?, shape(TASK)?);
        Some(Self { create, decompose, task, outputs: Arc::new(Outputs::new(vec![])) })
    }

    /// The steps of a branch that runs one task, which may call these tools; none: all that the script permits.
    pub(crate) fn task_steps(&self, tools: Option<Vec<String>>) -> ProgramSteps {
        // What needs the task must not run after an error.
        let fails = Route { set: vec![], insert: None, then: Some(RouteTarget::Fail) };
        let step = ProgramStep {
            id: "run".to_owned(),
            kind: TASK,
            exits: &["exit_criteria_met", "failed"],
            condition: None,
            action: Arc::new(PlanTaskAction { prompts: self.clone(), tools }),
            routes: RouteTable::new(vec![(ExitReason::Error, fails)]),
            on_interrupted: Default::default(),
            options: Default::default(),
            compensate: Arc::default(),
        };
        Arc::new(vec![step])
    }

    /// Asks with one of the prompts. Returns `None` if the reply cannot be used. For a task, `task` is its name: it is asked about in the
    /// name of the action that runs the plan, as `plan_it/Data`.
    ///
    /// # Errors
    /// The model cannot be reached, or the prompt cannot be rendered.
    pub(crate) async fn ask(
        &self,
        turn: &Turn<'_>,
        name: &'static str,
        content: &str,
        task: Option<&str>,
        mut names: TemplateNames,
    ) -> Result<Option<Reply>, ActionError> {
        for empty in ["tone", "exit"] {
            names.set_text(empty, "");
        }
        names.set("understanding_threshold", Value::Null);
        let shape = match name {
            CREATE => &self.create,
            DECOMPOSE => &self.decompose,
            _ => &self.task,
        };
        let owner = task.and_then(|task| Some(format!("{}/{task}", owner_of(&turn.place.path)?)));
        let ask = Ask::new((name, VERSION), shape, &self.outputs, content, names);
        let exchange = turn.exchange(Ask { action: owner.as_deref(), without_outcome: true, ..ask }).await?;
        Ok(exchange.reading.ok().filter(|_| exchange.held_back.is_none()))
    }
}

/// The id of the action that runs the task with this path: that of `topic/plan_it#2/task_7/run` is `plan_it`.
fn owner_of(path: &str) -> Option<String> {
    let action = path.rsplit('/').nth(2)?;
    Some(action.split('#').next().unwrap_or(action).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_branch_is_the_action_before_it() {
        let table = [
            ("p/topic/plan_it/task_7/run", Some("plan_it")),
            ("p/topic#2/plan_it#3/task_7/run", Some("plan_it")),
            ("p/topic/both/plan_it/task_7/run", Some("plan_it")),
            ("plan_it/run", None),
        ];
        for (path, owner) in table {
            assert_eq!(owner_of(path).as_deref(), owner, "{path}");
        }
    }
}
