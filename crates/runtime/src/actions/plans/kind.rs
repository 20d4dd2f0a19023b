//! The operations on plans as actions of an author, as a table: they differ in their names and parameters. Each has its own schema and
//! page.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::calling::{outputs, set_outputs};
use crate::actions::failure::failed_flow;
use crate::actions::plans::bound::bound_plan;
use crate::actions::plans::constants::{check_constants, is_text};
use crate::actions::plans::edits::{OperationOutcome, RejectedOperation, run_plan_operation};
use crate::actions::plans::execution::{PlanRun, PlanRunStep};
use crate::actions::plans::generation::{Generation, GenerationStep, create_plan};
use crate::actions::plans::prompts::{PLAN_PROMPTS, PlanPrompts};
use crate::plan::numbers::inexact_integer;
use crate::plan::task::TASK_BLOCK;
use crate::program::action::Action;
use crate::program::assigned::Assigned;
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::nested_value::{NestedValue, evaluate_nested};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::ProgramSteps;
use crate::program::prompt::PromptNames;
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::yaml::YamlNode;

/// A kind that is one operation.
pub(crate) struct PlanKind {
    name: &'static str,
    schema: &'static str,
    page: &'static str,
    /// The names of its parameters; a `*` at the end marks a required one.
    parameters: &'static [&'static str],
    /// Whether it calls a model.
    asks: bool,
}

macro_rules! plan_kinds {
    ($($constant:ident $name:literal $asks:literal: $($parameter:literal)*;)*) => {
        $(
            #[doc = concat!("The operation `", $name, "` (docs/plans.md).")]
            pub(crate) static $constant: PlanKind = PlanKind {
                name: $name,
                schema: include_str!(concat!("../../../../../schemas/actions/", $name, ".json")),
                page: include_str!(concat!("../../../../../docs/actions/", $name, ".md")),
                parameters: &[$($parameter),*],
                asks: $asks,
            };
        )*
    };
}

plan_kinds! {
    CREATE_PLAN "create_plan" true: "goal*" "title" "notes" "sections" "style";
    LIST_PLANS "list_plans" false: "session_id" "workflow_id";
    EXECUTE_PLAN "execute_plan" true: "plan_id" "max_parallel";
    DELETE_PLAN "delete_plan" false: "plan_id*";
    CREATE_TASK "create_task" false:
        "task_name*" "plan_id" "parent_id" "task_type" "instruction" "metadata" "dependencies" "anchor_task_id" "anchor_position"
        "insert_before" "insert_after" "position";
    UPDATE_TASK "update_task" false:
        "plan_id" "task_id" "task_name" "name" "instruction" "metadata" "dependencies";
    UPDATE_TASK_INSTRUCTION "update_task_instruction" false: "plan_id" "task_id" "task_name" "instruction*";
    MOVE_TASK "move_task" false:
        "plan_id" "task_id" "task_name" "new_parent_id" "new_parent_name" "anchor_task_id" "anchor_position" "insert_before"
        "insert_after" "position";
    DELETE_TASK "delete_task" false: "plan_id" "task_id" "task_name";
    SHOW_TASKS "show_tasks" false: "plan_id";
    QUERY_STATUS "query_status" false: "plan_id" "task_id" "task_name";
    RERUN_TASK "rerun_task" true: "plan_id" "task_id" "task_name" "with_dependents";
    DECOMPOSE_TASK "decompose_task" true: "plan_id" "task_id" "expand_depth" "node_budget";
    REQUEST_SUBGRAPH "request_subgraph" false: "plan_id" "logical_id" "task_id" "max_depth";
}

/// An operation of the author.
struct PlanAction {
    name: &'static str,
    parameters: Vec<(String, NestedValue)>,
    /// Our variables, each with the path of what it receives in the result.
    outputs: Vec<(String, String)>,
    prompts: Option<PlanPrompts>,
    task_steps: Option<ProgramSteps>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct PlanFrame {
    /// The parameters, once they are evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Map<String, Value>>,
    /// Tells this visit of the action from others.
    visit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<PlanRun>,
}

impl Kind for PlanKind {
    fn info(&self) -> KindInfo {
        let exits = &["exit_criteria_met", "failed"];
        KindInfo { name: self.name, schema: self.schema, page: self.page, exits }
    }

    fn prompts(&self) -> &'static [(&'static str, PromptNames)] {
        if self.asks { &PLAN_PROMPTS } else { &[] }
    }

    fn asks_first(&self) -> bool {
        self.name == CREATE_PLAN.name
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().author_errors();
        let (mut parameters, mut written) = (Vec::new(), Vec::new());
        for parameter in self.parameters {
            let name = parameter.trim_end_matches('*');
            let node = if name.len() < parameter.len() { fields.required(name) } else { fields.take(name) };
            let Some(node) = node.filter(|node| has_type(name, node, fields)) else { continue };
            written.push((name, node));
            let value = match node.as_scalar() {
                // A number is text here.
                Some(scalar) if is_text(name) && !node.to_json().is_string() => {
                    Some(NestedValue::Value(Assigned::Literal(Value::from(scalar.text.as_str()).into())))
                }
                _ => NestedValue::read(node, checker),
            };
            parameters.extend(value.map(|value| (name.to_owned(), value)));
        }
        check_constants(self.name, &written, fields);
        let outputs = fields.take("output").map(|node| outputs(node, fields)).unwrap_or_default();
        for (ours, _) in &outputs {
            checker.may_have_value(ours, None);
        }
        let prompts = if self.asks { Some(PlanPrompts::read(fields, checker)) } else { None };
        checker.describe(ActionProperties {
            max_rounds: 1,
            outputs: outputs.len(),
            min_calls: u32::from(self.name == CREATE_PLAN.name),
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        let prompts = match prompts {
            Some(prompts) => Some(prompts?),
            None => None,
        };
        let task_steps = prompts.as_ref().map(|prompts| prompts.task_steps(None));
        let outputs = outputs.into_iter().map(|(ours, theirs)| (ours.value, theirs.value)).collect();
        Some(Box::new(PlanAction { name: self.name, parameters, outputs, prompts, task_steps }))
    }
}

#[async_trait]
impl Action for PlanAction {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let mut frame: PlanFrame = turn.state()?;
        let Some(parameters) = frame.parameters.clone() else {
            // Evaluated once, so that the operation is the same after an interruption.
            let values = evaluate_nested(turn, &self.parameters)?;
            let inexact = values.iter().find_map(|(_, value)| value.digits().and_then(inexact_integer));
            if let Some(number) = inexact.map(str::to_owned) {
                let why = msg!("the number {number} cannot be kept exactly; write it as text, in quotes");
                return self.ended(turn, Err(RejectedOperation::new(why)));
            }
            let values = values.into_iter().map(|(name, value)| (name, value.into_value())).collect();
            turn.store_state(&PlanFrame { parameters: Some(values), visit: turn.last_seq, ..frame })?;
            return Ok(Flow::Onward);
        };
        let key = turn.plans.key(frame.visit, &turn.place.path);
        let bound = bound_plan(turn);
        let outcome = match (self.name, &self.prompts) {
            ("create_plan", Some(prompts)) => create_plan(turn, prompts, &parameters, &key).await?,
            ("decompose_task", Some(prompts)) => {
                let mut state = match frame.generation.take() {
                    Some(state) => state,
                    None => match Generation::start(turn, bound, &parameters).await? {
                        Ok(state) => state,
                        Err(refused) => return self.ended(turn, Err(refused)),
                    },
                };
                match state.proceed(turn, prompts, &key).await? {
                    GenerationStep::Ended(outcome) => outcome,
                    GenerationStep::Onward => {
                        turn.store_state(&PlanFrame { generation: Some(state), ..frame })?;
                        return Ok(Flow::Onward);
                    }
                }
            }
            ("execute_plan" | "rerun_task", _) => {
                let mut state = match frame.execution.take() {
                    Some(state) => state,
                    None => match PlanRun::start(turn, bound, self.name, &parameters, &key).await? {
                        Ok(state) => state,
                        Err(refused) => return self.ended(turn, Err(refused)),
                    },
                };
                match state.proceed(turn, &key).await? {
                    PlanRunStep::Ended(outcome) => outcome,
                    PlanRunStep::Flow(flow) => {
                        turn.store_state(&PlanFrame { execution: Some(state), ..frame })?;
                        return Ok(flow);
                    }
                }
            }
            (name, _) => run_plan_operation(turn, bound, name, &parameters, &key).await?,
        };
        self.ended(turn, outcome)
    }

    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        self.task_steps.as_ref().filter(|_| block.starts_with(TASK_BLOCK))
    }
}

impl PlanAction {
    /// Sets the outputs, or fails with the reason.
    fn ended(&self, turn: &Turn<'_>, outcome: OperationOutcome) -> Result<Flow, ActionError> {
        let result = match outcome {
            Ok(result) => result,
            Err(refused) => {
                return Ok(failed_flow(turn, &msg!("`{name}` failed: {why}", name = self.name, why = refused.why)));
            }
        };
        let mut values = ExactValues::new();
        for (_, path) in &self.outputs {
            match field_of(&result, path) {
                Some(value) => _ = values.insert(path.clone(), ExactValue::from(value.clone())),
                None => {
                    let message = msg!("the result of `{name}` has no field `{path}`", name = self.name);
                    let fields = result.as_object().into_iter().flatten().map(|(name, _)| name);
                    let help = msg!("it has {}", Message::names(fields));
                    turn.warn("no-such-result", message, Some(help));
                }
            }
        }
        let extracted_variables = set_outputs(turn, &self.outputs, &values)?;
        let mut metadata = Map::new();
        metadata.insert("result".into(), result);
        Ok(Flow::done(Outcome { extracted_variables, metadata, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }
}

/// Whether a parameter is written as its schema says; reported if not. A text may be an expression; constant texts are checked by
/// [`check_constants`].
fn has_type(name: &str, node: &YamlNode, fields: &Fields<'_>) -> bool {
    let value = node.to_json();
    let is_id = |value: &Value| value.is_i64() || value.is_u64();
    let is_right = value.is_string()
        || match name {
            "plan_id" | "task_id" | "logical_id" | "anchor_task_id" | "position" | "max_parallel" | "expand_depth"
            | "node_budget" | "max_depth" => is_id(&value),
            "parent_id" | "new_parent_id" => is_id(&value) || value.is_null(),
            "insert_before" | "insert_after" => is_id(&value) || value.is_boolean(),
            "with_dependents" => value.is_boolean(),
            "dependencies" => value.is_array(),
            "metadata" => value.is_object(),
            "sections" => is_id(&value) || value.as_array().is_some_and(|items| items.iter().all(is_plain)),
            "anchor_position" => false,
            _ => is_plain(&value),
        };
    if !is_right {
        let message = msg!("`{name}` has a value of another type: {}", node.describe());
        let help = "the page of the action type lists what it can be";
        fields.error("wrong-type", message, node.span, help);
    }
    is_right
}

fn is_plain(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// A field of a result: `result` is the whole, `task.name` a field of a field. What is not there is searched in `task`.
fn field_of<'r>(result: &'r Value, path: &str) -> Option<&'r Value> {
    if path == "result" {
        return Some(result);
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    result.pointer(&pointer).or_else(|| result.get("task")?.pointer(&pointer))
}
