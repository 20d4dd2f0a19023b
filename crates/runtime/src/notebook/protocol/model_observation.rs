//! Builds the observation for a model: what its prompt does not say elsewhere, in a size that leaves room for the rest of the prompt
//! (docs/actions/behavior_loop.md).

use serde_json::{Map, Value, json};

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::protocol::brief::{MAX_NAME_BYTES, cell, cut, fitting, last, size};
use crate::notebook::protocol::outline::NotebookOutline;
use crate::notebook::state::NotebookState;
use crate::notebook::workflow::{Stage, Workflow};

/// The maximum number of last cells that are shown.
pub const MAX_PROMPT_CELLS: usize = 12;

/// The maximum size of the cells, in bytes.
const MAX_CELLS_BYTES: usize = 5 * 1024;

/// The maximum sizes of the content of the last cell and of earlier ones, in bytes.
const MAX_CONTENT_BYTES: (usize, usize) = (2_000, 500);

/// The maximum sizes of the outputs of the last cell and of earlier ones, in bytes.
const MAX_OUTPUTS_BYTES: (usize, usize) = (1_200, 300);

/// The maximum size of the variables, in bytes.
const MAX_VARIABLES_BYTES: usize = 3 * 1024;

/// The maximum size of the value of one variable, in bytes; of a larger one, the shape is shown.
const MAX_VARIABLE_BYTES: usize = 200;

/// The maximum size of the names of variables that are not shown, in bytes.
const MAX_OTHER_NAMES_BYTES: usize = 300;

/// The maximum size of the plan, in bytes.
const MAX_PLAN_BYTES: usize = 2_500;

/// The maximum size of a name in the plan, in bytes.
const MAX_PLAN_NAME_BYTES: usize = 60;

/// The maximum size of the outline of earlier cells, in bytes.
const MAX_OUTLINE_BYTES: usize = 3 * 1024;

/// The maximum size of the effects and of the completed sections, in bytes each.
const MAX_LIST_BYTES: usize = 500;

/// The starts of effects that repeat what a cell shows.
const REPEATED_EFFECTS: [&str; 11] = [
    "Added content: ",
    "Created chapter: ",
    "Created section: ",
    "Created step: ",
    "Updated title: ",
    "Updated text: ",
    "Executed code: ",
    "Output: ",
    "Error: ",
    "Agent thinking started",
    "Thinking completed",
];

/// The data of an observation for a model.
pub struct ModelObservation<'a> {
    pub state: &'a NotebookState,
    /// The last cells, in order.
    pub cells: &'a [Cell],
    /// The outline of the cells before them.
    pub outline: NotebookOutline,
    /// The variables of the script that may be shown.
    pub variables: Map<String, Value>,
    /// The language of the kernel. `None` if no code may run.
    pub language: Option<String>,
    /// Whether the state machine is shown.
    pub include_machine: bool,
}

impl ModelObservation<'_> {
    /// The number of the last of `cells` that an observation shows.
    pub fn shown_cells(cells: &[Cell]) -> usize {
        prompt_cells(cells).len()
    }

    pub fn to_json(&self) -> Value {
        let state = self.state;
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            let is_empty = match &value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if !is_empty {
                fields.insert(name.to_owned(), value);
            }
        };
        put("kernel_language", json!(self.language));
        put("plan", plan(state));
        let (variables, others) = self.variables();
        put("variables", Value::Object(variables));
        put("other_variables", Value::Array(others));
        put("effects", effects(state));
        put("section_progress", section_progress(state));
        if self.include_machine {
            put(
                "FSM",
                json!({ "state": cut(&state.fsm.state, MAX_NAME_BYTES), "last_transition": state.fsm.last_transition }),
            );
        }
        let title = state.title.as_deref().map(|title| cut(title, MAX_NAME_BYTES));
        let mut notebook = json!({ "title": title, "cell_count": state.cell_count });
        if let Some(fields) = notebook.as_object_mut() {
            let outline = self.outline.lines(MAX_OUTLINE_BYTES);
            if !outline.is_empty() {
                fields.insert("outline_of_earlier_cells".to_owned(), json!(outline));
            }
            fields.insert("cells".to_owned(), Value::Array(prompt_cells(self.cells)));
        }
        put("notebook", notebook);
        Value::Object(fields)
    }

    /// The variables of the script, of servers and of the kernel that fit, and the names of some others. For the same name, the first
    /// one is used.
    fn variables(&self) -> (Map<String, Value>, Vec<Value>) {
        let (stored, kernel) = (&self.state.variables, &self.state.kernel_variables);
        let stored = stored.iter().filter(|(name, _)| !self.variables.contains_key(*name));
        let of_kernel = kernel
            .iter()
            .filter(|(name, _)| !self.variables.contains_key(*name) && !self.state.variables.contains_key(*name));
        let (mut shown, mut others) = (Map::new(), Vec::new());
        let mut available = MAX_VARIABLES_BYTES;
        for (name, value) in self.variables.iter().chain(stored).chain(of_kernel) {
            let value = shape(value);
            match available.checked_sub(size(&value) + size(&Value::from(name.as_str())) + 2) {
                Some(rest) => {
                    available = rest;
                    shown.insert(name.clone(), value);
                }
                None => others.push(Value::from(cut(name, MAX_NAME_BYTES))),
            }
        }
        let count = others.len();
        let mut others = fitting(others.into_iter(), MAX_OTHER_NAMES_BYTES);
        if others.len() < count {
            others.push(Value::from(format!("… {} more", count - others.len())));
        }
        (shown, others)
    }
}

/// A value, or what is known of a large one: its start, or how many items or which fields it has.
fn shape(value: &Value) -> Value {
    if size(value) <= MAX_VARIABLE_BYTES {
        return value.clone();
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => match items.first() {
            Some(Value::Array(row)) => format!("[{} × {} items]", items.len(), row.len()),
            Some(Value::Object(fields)) => format!("[{} items with {}]", items.len(), names(fields)),
            _ => format!("[{} items]", items.len()),
        },
        Value::Object(fields) => format!("{{{} fields: {}}}", fields.len(), names(fields)),
        other => other.to_string(),
    };
    Value::String(cut(&text, MAX_VARIABLE_BYTES / 2))
}

fn names(fields: &Map<String, Value>) -> String {
    fields.keys().take(10).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The stages and steps with their names and where each stands. If they do not fit, those of other stages are counted.
fn plan(state: &NotebookState) -> Value {
    let Some(workflow) = &state.workflow else { return Value::Null };
    let current = state.location.stage_id.as_deref();
    let all = stages(state, workflow, |_| true);
    if size(&all) <= MAX_PLAN_BYTES {
        return all;
    }
    let of_current = stages(state, workflow, |stage| Some(stage.id.as_str()) == current);
    if size(&of_current) <= MAX_PLAN_BYTES {
        return of_current;
    }
    // Only what is around the session: its stage and the next ones.
    let place = workflow.stages.iter().position(|stage| Some(stage.id.as_str()) == current).unwrap_or_default();
    let near = workflow.stages.iter().skip(place).map(|stage| stage_json(state, stage, false));
    let near = fitting(near, MAX_PLAN_BYTES / 3);
    let steps = workflow.stages.get(place).map(|stage| stage.steps.as_slice()).unwrap_or_default();
    let at = steps.iter().position(|step| state.location.step_id.as_ref() == Some(&step.id)).unwrap_or_default();
    let steps = steps.iter().skip(at).map(|step| item(&step.id, &step.name, step_state(state, &step.id)));
    json!({
        "stages_in_all": workflow.stages.len(),
        "stages": near,
        "steps_of_this_stage": fitting(steps, MAX_PLAN_BYTES / 3),
    })
}

fn stages(state: &NotebookState, workflow: &Workflow, with_steps: impl Fn(&Stage) -> bool) -> Value {
    let stages = workflow.stages.iter().map(|stage| stage_json(state, stage, with_steps(stage)));
    json!({ "name": cut(&workflow.name, MAX_PLAN_NAME_BYTES), "stages": stages.collect::<Vec<_>>() })
}

fn stage_json(state: &NotebookState, stage: &Stage, with_steps: bool) -> Value {
    let location = &state.location;
    let stands = match () {
        () if location.stage_id.as_ref() == Some(&stage.id) => "current",
        () if location.completed_stages.contains(&stage.id) => "completed",
        () => "open",
    };
    let mut sent = item(&stage.id, &stage.name, stands);
    if let Some(fields) = sent.as_object_mut() {
        let steps = match with_steps {
            true => stage
                .steps
                .iter()
                .map(|step| item(&step.id, &step.name, step_state(state, &step.id)))
                .collect::<Vec<_>>()
                .into(),
            false => Value::from(stage.steps.len()),
        };
        fields.insert("steps".to_owned(), steps);
    }
    sent
}

fn step_state(state: &NotebookState, step: &String) -> &'static str {
    match () {
        () if state.location.step_id.as_ref() == Some(step) => "current",
        () if state.location.completed_steps.contains(step) => "completed",
        () => "open",
    }
}

/// A stage or a step. A name that is its id is left out.
fn item(id: &str, name: &str, stands: &str) -> Value {
    match name == id || name.is_empty() {
        true => json!({ "id": cut(id, MAX_NAME_BYTES), "state": stands }),
        false => json!({ "id": cut(id, MAX_NAME_BYTES), "name": cut(name, MAX_PLAN_NAME_BYTES), "state": stands }),
    }
}

/// The effects that no cell shows, the newest last.
fn effects(state: &NotebookState) -> Value {
    let is_new = |effect: &&String| !REPEATED_EFFECTS.iter().any(|start| effect.starts_with(start));
    Value::Array(last(state.effects.history.iter().chain(&state.effects.current).filter(is_new), 2, MAX_LIST_BYTES))
}

/// The sections without those that are not set.
fn section_progress(state: &NotebookState) -> Value {
    let sections = &state.section_progress;
    let mut fields = Map::new();
    if let Some(id) = &sections.current_section_id {
        fields.insert("current_section_id".to_owned(), Value::from(cut(id, MAX_NAME_BYTES)));
    }
    if let Some(number) = sections.current_section_number {
        fields.insert("current_section_number".to_owned(), Value::from(number));
    }
    if !sections.completed_sections.is_empty() {
        let completed = last(sections.completed_sections.iter(), 1, MAX_LIST_BYTES);
        fields.insert("completed_sections".to_owned(), Value::Array(completed));
    }
    if let Some(total) = sections.total_expected {
        fields.insert("total_expected".to_owned(), Value::from(total));
    }
    Value::Object(fields)
}

/// The last cells that fit, in order. The last one is always shown.
fn prompt_cells(all: &[Cell]) -> Vec<Value> {
    let mut available = MAX_CELLS_BYTES;
    let mut shown: Vec<Value> = Vec::new();
    for one in all.iter().rev().take(MAX_PROMPT_CELLS) {
        let is_last = shown.is_empty();
        let mut sent = prompt_cell(one, is_last);
        // Characters that JSON escapes take six bytes.
        if is_last && size(&sent) > available {
            sent = prompt_cell(one, false);
        }
        if is_last && size(&sent) > available {
            sent = json!({ "id": cut(&one.id, MAX_NAME_BYTES), "content": cut(&one.content, MAX_NAME_BYTES) });
        }
        let Some(rest) = available.checked_sub(size(&sent) + 1) else { break };
        available = rest;
        shown.push(sent);
    }
    shown.reverse();
    shown
}

fn prompt_cell(one: &Cell, is_last: bool) -> Value {
    let pick = |(last, earlier): (usize, usize)| if is_last { last } else { earlier };
    let mut sent = cell(one);
    let Some(fields) = sent.as_object_mut() else { return sent };
    fields.insert("content".to_owned(), Value::from(cut(&one.content, pick(MAX_CONTENT_BYTES))));
    if one.kind == CellKind::Markdown {
        fields.remove("type");
    }
    // The type of the cell says the same.
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("shot_type");
        if metadata.is_empty() {
            fields.remove("metadata");
        }
    }
    if let Some(outputs) = fields.remove("outputs") {
        let texts: Vec<String> = outputs.as_array().into_iter().flatten().filter_map(output_text).collect();
        let joined = texts.join("\n");
        if !joined.is_empty() {
            // An error comes last, so the end is kept.
            fields.insert("output".to_owned(), Value::from(end_of(&joined, pick(MAX_OUTPUTS_BYTES))));
        }
    }
    sent
}

/// The text of an output in the form in which it is sent.
pub(crate) fn output_text(output: &Value) -> Option<String> {
    fn text(value: Option<&Value>) -> Option<&str> {
        value?.as_str().map(str::trim_end).filter(|text| !text.is_empty())
    }
    if let Some(name) = text(output.get("ename")) {
        return Some(match text(output.get("evalue")) {
            Some(value) => format!("{name}: {value}"),
            None => name.to_owned(),
        });
    }
    text(output.get("text")).or_else(|| text(output.pointer("/data/text~1plain"))).map(str::to_owned)
}

/// The end of a text, cut to `max` bytes.
fn end_of(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let from = text.ceil_char_boundary(text.len().saturating_sub(max.saturating_sub('…'.len_utf8())));
    format!("…{}", text.get(from..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::workflow::PlanStep;

    fn observed(state: &NotebookState, cells: &[Cell], variables: Value) -> Value {
        let mut outline = NotebookOutline::default();
        cells.iter().for_each(|cell| outline.add(cell));
        let variables = variables.as_object().cloned().unwrap();
        let language = Some("python".to_owned());
        ModelObservation { state, cells, outline, variables, language, include_machine: true }.to_json()
    }

    #[test]
    fn the_size_is_limited_whatever_the_notebook_holds() {
        let wide = "\u{1}字\"".repeat(3_000);
        let step = PlanStep { id: wide.clone(), name: wide.clone(), ..PlanStep::default() };
        let stage = Stage { id: wide.clone(), name: wide.clone(), steps: vec![step; 20], ..Stage::default() };
        let mut state = NotebookState { title: Some(wide.clone()), ..NotebookState::default() };
        state.workflow = Some(Workflow { name: wide.clone(), stages: vec![stage; 10] });
        state.location.stage_id = Some(wide.clone());
        state.effects.current = vec![wide.clone(); 50];
        state.section_progress.completed_sections = vec![wide.clone(); 200];
        state.fsm.state.clone_from(&wide);
        state.kernel_variables = (0..100).map(|n| (format!("{n}{wide}"), json!(n))).collect::<Map<_, _>>().into();
        let mut cell = Cell { id: wide.clone(), content: format!("# {wide}"), ..Cell::default() };
        cell.outputs = vec![json!({ "output_type": "stream", "text": wide })];
        let sent = observed(&state, &vec![cell; 30], json!({ "list": vec![wide.clone(); 50], "text": wide }));
        assert!(size(&sent) < 17 * 1024, "{}", size(&sent));
        assert!(!sent["notebook"]["cells"].as_array().unwrap().is_empty());
    }

    #[test]
    fn large_values_are_shown_with_their_shape_and_effects_only_if_no_cell_shows_them() {
        let mut state = NotebookState::default();
        state.effects.current = vec!["Added content: x".to_owned(), "Ran count: {\"n\":1}".to_owned()];
        let row = json!([1, 2, 3]);
        let item = json!({ "id": 1, "name": "a" });
        let sent = observed(
            &state,
            &[],
            json!({ "few": [1, 2], "table": vec![row; 120], "items": vec![item; 80], "text": "x".repeat(500),
                    "fields": (0..90).map(|n| (format!("f{n}"), json!(n))).collect::<Map<_, _>>() }),
        );
        let variables = &sent["variables"];
        assert_eq!(variables["few"], json!([1, 2]));
        assert_eq!(variables["table"], "[120 × 3 items]");
        assert_eq!(variables["items"], "[80 items with id, name]");
        assert!(variables["fields"].as_str().unwrap().starts_with("{90 fields: f0, f1"), "{variables}");
        assert_eq!(variables["text"].as_str().unwrap().len(), MAX_VARIABLE_BYTES / 2);
        assert_eq!(sent["effects"], json!(["Ran count: {\"n\":1}"]));
    }
}
