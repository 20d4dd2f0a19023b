//! A model as the source of behaviors: the names of its prompts, and how its replies are read.

use bcc_lang::message::message::Message;
use serde_json::{Value, json};

use crate::actions::behaviors::config::{BEHAVIOR, LoopConfig, REFLECTION, ServerRequest};
use crate::actions::behaviors::frame::{Current, LoopFrame};
use crate::actions::behaviors::offered::{custom_actions, offered_actions};
use crate::actions::behaviors::plan;
use crate::actions::behaviors::source::{FirstPiece, SourceAnswer, masker};
use crate::notebook::export::brief::NotebookMetadata;
use crate::notebook::protocol::brief::cut;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::model_observation::{MAX_PROMPT_CELLS, ModelObservation};
use crate::notebook::protocol::response::{Reflection, reflection};
use crate::notebook::state::NotebookState;
use crate::program::event_masking::mask_fields;
use crate::program::exchange::Ask;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};
use bcc_lang::value::mask::Masker;
use bcc_lang::value::quoting::{quote, quote_after_label};
use bcc_llm::reply::bare_list::{BareList, starts_with_list};
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

/// The maximum size of the todo list in a prompt, in bytes.
const MAX_TODO_BYTES: usize = 1_500;

/// The maximum size of one item of the todo list in a prompt, in bytes.
const MAX_TODO_ITEM_BYTES: usize = 300;

/// The field of a behavior that is the list of its actions.
const ACTIONS: &str = "actions";

/// One of the two requests to a model.
struct ModelRequest<'a> {
    name: &'static str,
    version: u32,
    shape: &'a ReplyShape,
    target: String,
    round: u32,
}

impl LoopConfig {
    pub(crate) async fn ask_model(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        state: &NotebookState,
        request: &ServerRequest,
    ) -> Result<SourceAnswer, ActionError> {
        let target = self.target_of(turn, state)?;
        let round = frame.behaviors + 1;
        let mut names = self.names(turn, state, &target, frame.feedback.as_ref()).await?;
        names.set("iteration", Value::from(round));
        names.set("behaviors_left", Value::from(self.last_behavior(turn).saturating_sub(frame.behaviors)));
        names.set("max_actions", Value::from(self.max_actions));
        let actions = offered_actions(turn);
        let exec = actions.iter().any(|name| name == "exec");
        names.set("actions", json!(actions));
        names.set("custom_actions", custom_actions(turn));
        let model_request =
            ModelRequest { name: BEHAVIOR, version: request.version, shape: &request.behavior, target, round };
        let inputs = vec![("todo_list".to_owned(), json!(state.todo_list)), ("exec".to_owned(), Value::from(exec))];
        let reply = self.exchange(turn, model_request, request, names, inputs).await?;
        Ok(reply.map(|response| (FirstPiece { response: Some(response), ..FirstPiece::default() }, None)))
    }

    pub(crate) async fn reflect_by_model(
        &self,
        turn: &Turn<'_>,
        frame: &LoopFrame,
        current: &Current,
        request: &ServerRequest,
    ) -> Result<Result<Reflection, Message>, ActionError> {
        let state = current.judged(turn.notebook_state());
        let target = match state.current_step() {
            None if !current.goal.is_empty() => current.goal.clone(),
            _ => self.target_of(turn, &state)?,
        };
        let mut names = self.names(turn, &state, &target, Some(&current.counts.for_judge())).await?;
        names.set("iteration", Value::from(frame.behaviors));
        names.set("behaviors_left", Value::from(self.last_behavior(turn).saturating_sub(frame.behaviors)));
        names.set_text("behavior", &*quote(&current.target));
        let (version, shape) = (request.reflection_version, &request.reflection);
        let model_request = ModelRequest { name: REFLECTION, version, shape, target, round: frame.behaviors };
        let inputs = vec![("todo_list".to_owned(), json!(state.todo_list))];
        let reply = self.exchange(turn, model_request, request, names, inputs).await?;
        Ok(reply.and_then(|reply| reflection(&reply).map_err(|error| error.message)))
    }

    /// The target of the step: that of the author in the topic of the script, that of the plan in any other step.
    pub(crate) fn target_of(&self, turn: &Turn<'_>, state: &NotebookState) -> Result<String, ActionError> {
        let planned = plan::goal(state);
        if state.location.step_id.as_deref().is_some_and(|step| step != turn.topic.id) && !planned.is_empty() {
            return Ok(planned);
        }
        if let Some(goal) = state.given.as_ref().and_then(|given| given.goal.clone()) {
            return Ok(goal);
        }
        let names = turn.names(1);
        let written = match self.target.as_ref().or(turn.topic.goal.as_ref()) {
            Some(text) => turn.text(text, &names)?,
            None => String::new(),
        };
        let name = || turn.topic.name.clone().unwrap_or_else(|| turn.topic.id.clone());
        Ok(if written.trim().is_empty() { name() } else { written })
    }

    /// The same for a server, which knows the id of the step already. None if the session is in no step, or nothing says more than the id.
    pub(crate) fn step_goal(&self, turn: &Turn<'_>, state: &NotebookState) -> Result<Option<String>, ActionError> {
        let Some(step) = &state.location.step_id else { return Ok(None) };
        Ok(Some(self.target_of(turn, state)?).filter(|goal| goal != step && *goal != turn.topic.id))
    }

    async fn names(
        &self,
        turn: &Turn<'_>,
        state: &NotebookState,
        target: &str,
        feedback: Option<&Feedback>,
    ) -> Result<TemplateNames, ActionError> {
        let observation = self.observe_for_model(turn, state).await?;
        let mut names = turn.names(self.max_behaviors);
        names.set_text("observation", observation.to_string());
        names.set_text("target", target);
        let masker = masker(turn);
        names.set("todo_list", json!(redacted_todo_list(&state.todo_list, &masker)));
        let feedback = feedback.map(|feedback| Feedback {
            last_action_result: masker.text(&feedback.last_action_result),
            not_understood: feedback.not_understood.iter().map(|note| masker.text(note)).collect(),
            ..feedback.clone()
        });
        let feedback = feedback.and_then(|feedback| feedback.for_model());
        names.set_text("feedback", feedback.unwrap_or_default());
        for name in ["tone", "exit"] {
            names.set_text(name, "");
        }
        names.set("understanding_threshold", Value::Null);
        Ok(names)
    }

    /// The observation for a model: without what its prompt has of its own, the todo list and the feedback.
    async fn observe_for_model(&self, turn: &Turn<'_>, state: &NotebookState) -> Result<Value, ActionError> {
        let cells = turn.last_cells(MAX_PROMPT_CELLS).await?;
        let shown = ModelObservation::shown_cells(&cells);
        let mut outline = turn.outline(cells.first().map_or(0, |cell| cell.number)).await?;
        let hidden = cells.len().saturating_sub(shown);
        cells.iter().take(hidden).for_each(|cell| outline.add(cell));
        let may_run = turn.services.host.kernel.check_permission().is_ok();
        let kernel = NotebookMetadata { kernel: turn.program.kernel.name.clone(), ..NotebookMetadata::default() };
        let observation = ModelObservation {
            state,
            cells: &cells,
            outline,
            variables: self.shown_variables(turn),
            language: may_run.then(|| kernel.spec().language),
            include_machine: self.include_progress,
        };
        let mut observed = observation.to_json();
        let masker = masker(turn);
        observed.get_mut("variables").into_iter().for_each(|variables| mask_fields(variables, &masker));
        masker.value(&mut observed, &[]);
        Ok(observed)
    }

    /// Runs one exchange and returns the reply as received, or why there is none.
    async fn exchange(
        &self,
        turn: &Turn<'_>,
        question: ModelRequest<'_>,
        request: &ServerRequest,
        names: TemplateNames,
        inputs: Vec<(String, Value)>,
    ) -> Result<Result<Value, Message>, ActionError> {
        let ModelRequest { name, version, shape, target, round } = question;
        let ask = Ask::new((name, version), shape, &request.outputs, &target, names);
        let (repair, reask) = (Some(request.repair), request.reask);
        let list = Some(ACTIONS).filter(|_| name == BEHAVIOR);
        let exchange = turn.exchange(Ask { inputs, round, list, repair, reask, without_outcome: true, ..ask }).await?;
        Ok(received(name, &exchange.raw, &exchange.reading, Some(shape).filter(|_| request.repair)))
    }
}

/// The reply to the prompt `name` as it was received, or why it cannot be used. With the shape of the reply as `repair`, a list that
/// is almost JSON is repaired.
pub fn received(
    name: &str,
    raw: &str,
    reading: &Result<Reply, UnreadableReply>,
    repair: Option<&ReplyShape>,
) -> Result<Value, Message> {
    // A bare list of actions is not an object, but is accepted as a behavior. It is checked first, because a search for an object
    // would find the first action in the list.
    if name == BEHAVIOR {
        if let Some(list) = BareList::find(raw, repair, ACTIONS) {
            return Ok(list.items);
        }
        if starts_with_list(raw) {
            return Err(Message::word("it starts with a list of actions that cannot be read"));
        }
    }
    match reading {
        // It is stored in a frame, which must be readable again.
        Ok(reply) if is_deeper_than(&Value::Object(reply.received.clone()), MAX_LEVELS) => {
            Err(Message::word("it is nested too deeply"))
        }
        // Legacy names are read as well, so the reply as received is used and not the coerced one.
        Ok(reply) => Ok(Value::Object(reply.received.clone())),
        Err(_) => Err(Message::word("it contains no readable JSON object")),
    }
}

/// The todo list for a prompt, with sensitive values redacted: the first items that fit, and how many follow.
fn redacted_todo_list(todo_list: &[String], masker: &Masker) -> Vec<String> {
    let mut available = MAX_TODO_BYTES;
    let mut shown = Vec::new();
    for item in todo_list {
        let item = cut(&quote_after_label(&masker.text(item)), MAX_TODO_ITEM_BYTES);
        let Some(rest) = available.checked_sub(item.len() + 3) else { break };
        available = rest;
        shown.push(item);
    }
    let hidden = todo_list.len() - shown.len();
    if hidden > 0 {
        shown.push(format!("… (+{hidden})"));
    }
    shown
}
