//! The plan of a session (docs/notebook.md): stages with steps. Initially it consists of the phases and topics of the script.
//! Changes by a server or a model are checked first and affect only this session.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::notebook::error::ActionFieldError;
use crate::notebook::error::ActionRejection;

/// The maximum number of stages of a received plan.
pub const MAX_STAGES: usize = 200;

/// The maximum number of steps of one stage of a received plan.
pub const MAX_STEPS: usize = 500;

/// The maximum size of a received plan as JSON, in bytes: it is stored in the state of the notebook.
pub const MAX_PLAN_BYTES: usize = 256 * 1024;

/// The maximum length of an id or a name, in characters.
pub(crate) const MAX_NAME: usize = 200;

/// The maximum size of the goal of a stage or a step, in bytes.
pub(crate) const MAX_GOAL_BYTES: usize = 8 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    #[serde(default)]
    pub name: String,
    pub stages: Vec<Stage>,
}

/// A stage: a phase of the script, or one that was added to the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its id, unique among the stages.
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    #[serde(default)]
    pub steps: Vec<PlanStep>,
    /// Additional fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A step: a topic of the script, or one that was added to the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Its id, unique among the steps of the plan.
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// Additional fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Whether a text is a valid id or name in a plan: not empty, not too long, on one line.
pub fn is_id(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control)
}

impl Workflow {
    pub fn stage(&self, id: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// The stage of the step with this id.
    pub(crate) fn stage_of(&self, step: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.step(step).is_some())
    }

    /// Checks that the plan is valid: it has stages, ids of stages are unique, ids of steps are unique in the whole plan, and
    /// no limit is exceeded. A stage may have no steps.
    /// Errors: `bad-plan` with the reason, which refers to stages and steps by number and not by name.
    pub fn check(&self) -> Result<(), ActionRejection> {
        if self.stages.is_empty() {
            return Err(bad_plan(Message::word("the plan has no stages")));
        }
        if self.stages.len() > MAX_STAGES {
            return Err(bad_plan(msg!("the plan has more than {MAX_STAGES} stages")));
        }
        if self.name.chars().count() > MAX_NAME {
            return Err(bad_plan(msg!("the name of the plan is longer than {MAX_NAME} characters")));
        }
        let (mut stages, mut steps) = (HashSet::new(), HashSet::new());
        for (index, stage) in self.stages.iter().enumerate() {
            check_names(&stage.id, &stage.name, &stage.goal)
                .map_err(|why| bad_plan(in_stage(index + 1, &why.into())))?;
            if !stages.insert(stage.id.as_str()) {
                return Err(bad_plan(in_stage(index + 1, &Message::word("its id is the same as an earlier one"))));
            }
            check_steps(&stage.steps).map_err(|rejection| bad_plan(in_stage(index + 1, &rejection.message)))?;
            if !stage.steps.iter().all(|step| steps.insert(step.id.as_str())) {
                return Err(bad_plan(in_stage(
                    index + 1,
                    &Message::word("a step has the same id as a step of an earlier stage"),
                )));
            }
        }
        if self.bytes() > MAX_PLAN_BYTES {
            return Err(bad_plan(msg!("the plan is larger than {MAX_PLAN_BYTES} bytes")));
        }
        Ok(())
    }

    /// The plan of a script with names and goals cut, so that a changed version of it can pass [`Workflow::check`].
    #[must_use]
    pub fn cut(mut self) -> Self {
        cut(&mut self.name, MAX_NAME);
        for max in [MAX_GOAL_BYTES, MAX_GOAL_BYTES / 16, 0] {
            for stage in &mut self.stages {
                cut(&mut stage.name, MAX_NAME);
                cut(&mut stage.goal, max);
                for step in &mut stage.steps {
                    cut(&mut step.name, MAX_NAME);
                    cut(&mut step.goal, max);
                }
            }
            if self.bytes() <= MAX_PLAN_BYTES {
                break;
            }
        }
        self
    }

    fn bytes(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Reads a plan: `{"name", "stages": […]}`, or a list of stages. Stages and steps may have `stage_id` and `step_id` instead
    /// of `id`, `title` instead of `name`, and `description` instead of `goal`; a text is a step with this id.
    /// Errors: It has a different structure. [`Workflow::check`] checks the content.
    pub fn read(value: &Value) -> Result<Self, ActionFieldError> {
        let (name, stages) = match value {
            Value::Array(stages) => (String::new(), stages),
            Value::Object(fields) => {
                let stages = fields.get("stages").and_then(Value::as_array).ok_or_else(|| ActionFieldError {
                    field: Some("stages"),
                    message: Message::word("a plan needs `stages`, which must be a list"),
                })?;
                (text(fields, &["name", "title"], "name")?.unwrap_or_default(), stages)
            }
            _ => {
                return Err(ActionFieldError {
                    field: None,
                    message: Message::word("a plan must be an object with `stages`"),
                });
            }
        };
        Ok(Self { name, stages: stages.iter().map(Stage::read).collect::<Result<_, _>>()? })
    }
}

impl Stage {
    pub fn step(&self, id: &str) -> Option<&PlanStep> {
        self.steps.iter().find(|step| step.id == id)
    }

    fn read(value: &Value) -> Result<Self, ActionFieldError> {
        let Some(fields) = value.as_object() else {
            return Err(ActionFieldError {
                field: Some("stages"),
                message: Message::word("each stage of a plan must be an object"),
            });
        };
        let mut fields = fields.clone();
        let steps = match fields.shift_remove("steps") {
            None | Some(Value::Null) => vec![],
            Some(steps) => read_steps(&steps)?,
        };
        let (id, name, goal) = names(&mut fields, "stage_id")?;
        Ok(Self { id, name, goal, steps, extra: fields })
    }
}

/// Reads the steps of a stage, like [`Workflow::read`].
pub(crate) fn read_steps(value: &Value) -> Result<Vec<PlanStep>, ActionFieldError> {
    let Some(list) = value.as_array() else {
        return Err(ActionFieldError {
            field: Some("steps"),
            message: Message::word("the steps of a stage must be a list"),
        });
    };
    let mut steps = Vec::new();
    for step in list {
        steps.push(match step {
            Value::String(id) => PlanStep { id: id.clone(), name: id.clone(), ..PlanStep::default() },
            Value::Object(fields) => {
                let mut fields = fields.clone();
                let (id, name, goal) = names(&mut fields, "step_id")?;
                PlanStep { id, name, goal, extra: fields }
            }
            _ => {
                let message = Message::word("each step of a plan must be an object, or its id");
                return Err(ActionFieldError { field: Some("steps"), message });
            }
        });
    }
    Ok(steps)
}

/// Checks that the steps of one stage are valid.
pub(crate) fn check_steps(steps: &[PlanStep]) -> Result<(), ActionRejection> {
    if steps.len() > MAX_STEPS {
        return Err(bad_plan(msg!("it has more than {MAX_STEPS} steps")));
    }
    let mut ids = HashSet::new();
    for (index, step) in steps.iter().enumerate() {
        check_names(&step.id, &step.name, &step.goal).map_err(|why| bad_plan(msg!("step {}: {why}", index + 1)))?;
        if !ids.insert(step.id.as_str()) {
            return Err(bad_plan(msg!("step {}: its id is the same as an earlier one", index + 1)));
        }
    }
    Ok(())
}

fn check_names(id: &str, name: &str, goal: &str) -> Result<(), &'static str> {
    if !is_id(id) {
        return Err("its id is empty, too long, or more than one line");
    }
    if name.chars().count() > MAX_NAME {
        return Err("its name is too long");
    }
    if goal.len() > MAX_GOAL_BYTES {
        return Err("its goal is too long");
    }
    Ok(())
}

/// Cuts a text to this number of bytes, including a final `…`.
fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max.saturating_sub('…'.len_utf8())));
        if max > 0 {
            text.push('…');
        }
    }
}

fn in_stage(number: usize, why: &Message) -> Message {
    msg!("stage {number}: {why}")
}

fn bad_plan(message: Message) -> ActionRejection {
    ActionRejection::new("bad-plan", message)
}

/// Takes id, name and goal out of the fields of a stage or a step; other fields are not changed.
fn names(fields: &mut Map<String, Value>, id_key: &'static str) -> Result<(String, String, String), ActionFieldError> {
    let id = text(fields, &["id", id_key], id_key)?.ok_or_else(|| ActionFieldError {
        field: Some(id_key),
        message: Message::word("each stage and step of a plan needs an `id`"),
    })?;
    let name = text(fields, &["name", "title"], "name")?.unwrap_or_else(|| id.clone());
    let goal = text(fields, &["goal"], "goal")?;
    fields.retain(|key, _| !["id", id_key, "name", "title", "goal"].contains(&key.as_str()));
    let goal = match goal {
        Some(goal) => goal,
        None => {
            let goal = text(fields, &["description"], "description")?.unwrap_or_default();
            fields.shift_remove("description");
            goal
        }
    };
    Ok((id, name, goal))
}

/// The first of these fields that is present, as a text; integers are converted to text.
fn text(fields: &Map<String, Value>, keys: &[&str], field: &'static str) -> Result<Option<String>, ActionFieldError> {
    match keys.iter().filter_map(|key| fields.get(*key)).find(|value| !value.is_null()) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(Some(number.to_string())),
        Some(_) => Err(ActionFieldError { field: Some(field), message: msg!("`{field}` of a plan must be a string") }),
    }
}
