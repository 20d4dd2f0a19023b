//! Reads a state document into the notebook with which a session begins. A document that is broken in any way gives none.

use std::collections::HashSet;
use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};
use serde_json::Value;

use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::effects::{Effects, MAX_HISTORY};
use crate::notebook::given::{AskedPart, FirstQuestion, GivenNotebook, GivenWork};
use crate::notebook::protocol::brief::cut;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::names::{PayloadObject, current_names};
use crate::notebook::protocol::state_document::cells::{ids_ahead, read_cells};
use crate::notebook::protocol::state_document::fields::{StateFindings, StateObject};
use crate::notebook::protocol::state_document::plan::{
    ProgressItems, ReadGoals, id_of, ignore_derived, is_over, plan_of_progress, written_plan,
};
use crate::notebook::state::{
    BEHAVIOR_COMPLETED, BEHAVIOR_RUNNING, Fsm, Location, MAX_COMPLETED_SECTIONS, MAX_IDS_AHEAD, MAX_TODO_ITEM_BYTES,
    MAX_TODO_ITEMS, NotebookState, SectionProgress,
};
use crate::notebook::workflow::is_id;

/// The maximum size of one effect, in bytes; longer ones are cut.
const MAX_EFFECT_BYTES: usize = 1_000;

/// The maximum size of the last output, in bytes; a longer one is cut.
const MAX_LAST_OUTPUT_BYTES: usize = 1_000;

/// The maximum number of completed stages or steps.
const MAX_COMPLETED: usize = 10_000;

/// The maximum size of a state, in bytes of JSON, without its cells and its variables, which have limits of their own.
const MAX_OTHER_BYTES: usize = 1024 * 1024;

/// What a document says.
#[derive(Debug)]
pub struct StateDocument {
    pub notebook: GivenNotebook,
    /// Whether nothing is left to do.
    pub is_over: bool,
}

/// Reads a document, and everything that is wrong with it: an error means that there is none, a warning that a part of it is not
/// taken over.
pub fn read_state(file: &Arc<SourceFile>, root: &YamlNode) -> (Option<StateDocument>, Vec<Diagnostic>) {
    let findings = Findings::new();
    let read = document(StateFindings { file, findings: &findings }, root);
    let read = read.filter(|_| !findings.has_errors());
    (read, findings.into_vec())
}

fn document(report: StateFindings<'_>, root: &YamlNode) -> Option<StateDocument> {
    if is_deeper_than(&root.to_json(), MAX_LEVELS) {
        report.error("too-deep", msg!("this state is nested deeper than {MAX_LEVELS} levels"), root.span);
        return None;
    }
    if other_bytes(root) > MAX_OTHER_BYTES {
        let message = msg!("without its cells and variables, this state has more than {MAX_OTHER_BYTES} bytes");
        report.error("out-of-range", message, too_large_part(root).span);
        return None;
    }
    let outer = StateObject::of(report, String::new(), root, Some(PayloadObject::Request))?;
    let inner = outer.object("observation", Some(PayloadObject::Request));
    let both = || inner.iter().chain([&outer]);
    let part = |name: &str, kind: PayloadObject| both().find_map(|object| object.object(name, Some(kind)));
    let context = part("context", PayloadObject::Context);
    let location_object = part("location", PayloadObject::Location);
    if location_object.is_none() && context.is_none() {
        let message = msg!("a state has `location` and `context` in `observation`, but this has neither");
        report.error("missing-key", message, root.span);
        return None;
    }
    let feedback = both().find_map(read_feedback);
    both().for_each(|object| object.ignore(&["options"]));
    let mut state = NotebookState::default();
    let mut cells = vec![];
    if let Some(context) = &context {
        cells = read_context(context, &mut state);
    }
    let mut work = GivenWork::default();
    let mut next = FirstQuestion { feedback, ..FirstQuestion::default() };
    if let Some(object) = location_object {
        let goals = read_location(&object, context.as_ref(), &mut state);
        work.goal = goals.put_into(state.workflow.as_mut(), &state.location);
        next.task = goals.behavior.unwrap_or_default();
        object.finish();
    }
    next.asks_for = match state.fsm.state.to_ascii_uppercase().as_str() {
        BEHAVIOR_RUNNING if state.location.behavior_id.is_some() => AskedPart::Actions,
        BEHAVIOR_COMPLETED | "BEHAVIOR_COMPLETE" if state.location.behavior_id.is_some() => AskedPart::Judgement,
        _ => AskedPart::Behavior,
    };
    let ended = ["WORKFLOW_COMPLETED", "WORKFLOW_COMPLETE"].contains(&state.fsm.state.to_ascii_uppercase().as_str());
    let is_over = ended || state.workflow.as_ref().is_some_and(|plan| is_over(plan, &state.location));
    work.next = Some(next);
    state.given = Some(work);
    for object in context.into_iter().chain(inner).chain([outer]) {
        object.finish();
    }
    Some(StateDocument { notebook: GivenNotebook { state, cells }, is_over })
}

/// The size of a part of a state, as JSON, without the cells and variables in it.
fn other_bytes(node: &YamlNode) -> usize {
    let entries = node.as_mapping().unwrap_or_default().iter();
    let entries = entries.filter(|entry| !is_counted_elsewhere(&entry.key.value));
    let of_entries = entries.map(|entry| entry.key.value.len() + other_bytes(&entry.value));
    let of_items = node.as_sequence().unwrap_or_default().iter().map(|item| other_bytes(item));
    let of_text = node.as_scalar().map_or(0, |scalar| scalar.text.len());
    of_entries.chain(of_items).sum::<usize>() + of_text
}

/// Whether a part of a state has limits of its own.
fn is_counted_elsewhere(name: &str) -> bool {
    matches!(name, "cells" | "variables" | "kernel_variables")
}

/// The smallest part that alone is too large.
fn too_large_part(node: &YamlNode) -> &YamlNode {
    let entries = node.as_mapping().unwrap_or_default().iter();
    let of_entries = entries.filter(|entry| !is_counted_elsewhere(&entry.key.value)).map(|entry| &entry.value);
    let mut parts = of_entries.chain(node.as_sequence().unwrap_or_default());
    parts.find(|part| other_bytes(part) > MAX_OTHER_BYTES).map_or(node, |part| too_large_part(part))
}

fn read_feedback(object: &StateObject<'_>) -> Option<Feedback> {
    let node = object.take("behavior_feedback")?;
    let feedback = match node.to_json() {
        Value::Object(fields) => {
            let current = current_names(PayloadObject::Feedback, &fields, &mut vec![]);
            serde_json::from_value::<Feedback>(Value::Object(current)).ok()
        }
        _ => None,
    };
    if feedback.is_none() {
        let place = object.place_of("behavior_feedback");
        object.report().error("wrong-type", msg!("`{place}` is no feedback on a behavior"), node.span);
    }
    feedback.map(Feedback::limited)
}

/// Reads the plan and the position in it, and returns the goals.
fn read_location(object: &StateObject<'_>, context: Option<&StateObject<'_>>, state: &mut NotebookState) -> ReadGoals {
    let current = object.object("current", Some(PayloadObject::Location));
    let position = current.as_ref().unwrap_or(object);
    let id = |name: &str| {
        let id = position.text(name);
        if id.as_deref().is_some_and(|id| !is_id(id)) {
            let place = position.place_of(name);
            position.report().error(
                "invalid-id",
                msg!("`{place}` must be one line of at most 200 characters"),
                position.span,
            );
        }
        id
    };
    let mut location = Location {
        stage_id: id("current_stage_id"),
        step_id: id("current_step_id"),
        behavior_id: id("behavior_id"),
        behavior_iteration: position
            .count("behavior_iteration")
            .and_then(|count| count.try_into().ok())
            .unwrap_or_default(),
        ..Location::default()
    };
    location.behaviors =
        location.behavior_id.as_deref().map_or(0, behavior_number).max(location.behavior_iteration.into());
    if let Some(current) = current {
        current.finish();
    }
    let progress = object.object("progress", None);
    let stages = ProgressItems::read(progress.as_ref(), "stages");
    let steps = ProgressItems::read(progress.as_ref(), "steps");
    if let Some(progress) = progress {
        if let Some(behaviors) = progress.object("behaviors", None) {
            // The current behavior and its number are those of the location.
            behaviors.ignore(&["completed", "current", "iteration", "remaining"]);
            ignore_derived(&behaviors);
            behaviors.finish();
        }
        progress.finish();
    }
    let goals = ReadGoals::read(object, &location);
    location.completed_steps = completed(object, "steps", &steps);
    location.completed_stages = completed(object, "stages", &stages);
    state.workflow = context
        .and_then(|context| written_plan(context, "workflow"))
        .or_else(|| plan_of_progress((object, "progress"), (&stages, &steps), &location));
    check_position(object, &location, state);
    // All steps of a completed stage are completed.
    let of_stages = state.workflow.iter().flat_map(|plan| &plan.stages);
    let of_stages = of_stages.filter(|stage| location.completed_stages.contains(&stage.id));
    let mut known: HashSet<String> = location.completed_steps.iter().cloned().collect();
    let more: Vec<String> = of_stages
        .flat_map(|stage| &stage.steps)
        .map(|step| step.id.clone())
        .filter(|id| known.insert(id.clone()))
        .collect();
    location.completed_steps.extend(more);
    state.location = location;
    goals
}

/// The ids of the completed items of a level.
fn completed(object: &StateObject<'_>, level: &str, items: &ProgressItems) -> Vec<String> {
    let ids: Vec<String> = items.completed.iter().filter_map(id_of).collect();
    let place = format!("{}.{level}.completed", object.place_of("progress"));
    if ids.len() < items.completed.len() {
        let without = items.completed.len() - ids.len();
        let message = msg!("{without} items of `{place}` have no id, and are not taken over");
        object.report().warn("missing-key", message, object.span);
    }
    if ids.len() > MAX_COMPLETED {
        let message = msg!("`{place}` has more than {MAX_COMPLETED} items");
        object.report().error("out-of-range", message, object.span);
        return vec![];
    }
    ids
}

/// The number of a behavior in the ids that sessions give, from which the next ones are made.
fn behavior_number(id: &str) -> u64 {
    id.strip_prefix("behavior_").and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Reports a location that the plan does not have.
fn check_position(object: &StateObject<'_>, location: &Location, state: &NotebookState) {
    let report = object.report();
    let (stage, step) = (location.stage_id.as_deref(), location.step_id.as_deref());
    if let (None, Some(_)) = (stage, step) {
        report.error("missing-key", msg!("`{}` names a step, but no stage", object.place), object.span);
        return;
    }
    let Some(plan) = &state.workflow else { return };
    let Some(id) = stage else { return };
    let Some(stage) = plan.stage(id) else {
        report.error(
            "unknown-target",
            msg!("`{}` names a stage that the plan does not have", object.place),
            object.span,
        );
        return;
    };
    if step.is_some_and(|step| stage.step(step).is_none()) {
        report.error(
            "unknown-target",
            msg!("`{}` names a step that its stage does not have", object.place),
            object.span,
        );
    }
}

/// Reads everything except the position, and returns the cells.
fn read_context(context: &StateObject<'_>, state: &mut NotebookState) -> Vec<Cell> {
    let report = context.report();
    let notebook = context.object("notebook", None);
    let cells = notebook.as_ref().map(read_cells).unwrap_or_default();
    if let Some(beginning) = NotebookState::beginning_with(&cells) {
        *state = beginning;
    }
    let is_text = |cell: &&Cell| {
        let heading = &cell.metadata;
        cell.kind == CellKind::Markdown && !(heading.is_step || heading.is_chapter || heading.is_section)
    };
    state.last_text_cell = cells.iter().rfind(is_text).map(|cell| cell.id.clone());
    let is_open = |cell: &&Cell| cell.kind == CellKind::Thinking && !cell.metadata.finished_thinking;
    state.thinking = cells.iter().rfind(is_open).map(|cell| cell.id.clone());
    state.ids_ahead = ids_ahead(&cells);
    if state.ids_ahead.len() > MAX_IDS_AHEAD {
        let message = msg!("more than {MAX_IDS_AHEAD} cells have ids of later cells, `cell-` and a number");
        report.error("out-of-range", message, context.span);
    }
    if let Some(notebook) = notebook {
        read_notebook(notebook, cells.len() as u64, state);
    }
    for (name, is_of_kernel) in [("kernel_variables", true), ("variables", false)] {
        read_variables(context, name, is_of_kernel, state);
    }
    read_todo_list(context, state);
    if let Some(effects) = context.object("effects", None) {
        let current = effect_texts(&effects, "current");
        let history = effect_texts(&effects, "history");
        let excess = history.len().saturating_sub(MAX_HISTORY);
        if excess > 0 {
            let place = effects.place_of("history");
            let message =
                msg!("the first {excess} effects of `{place}` are not taken over: a session has {MAX_HISTORY}");
            report.warn("out-of-range", message, effects.span);
        }
        state.effects = Effects { current, history: history.into_iter().skip(excess).collect() };
        effects.finish();
    }
    if let Some(sections) = context.object("section_progress", Some(PayloadObject::Sections)) {
        let completed: Vec<String> = sections.texts("completed_sections").into_iter().map(|(text, _)| text).collect();
        if completed.len() > MAX_COMPLETED_SECTIONS {
            let place = sections.place_of("completed_sections");
            report.error("out-of-range", msg!("`{place}` has more than {MAX_COMPLETED_SECTIONS} items"), sections.span);
        }
        state.section_progress = SectionProgress {
            current_section_id: sections.text("current_section_id"),
            current_section_number: sections.count("current_section_number"),
            completed_sections: completed,
            total_expected: sections.count("total_expected"),
        };
        sections.finish();
    }
    if let Some(machine) = context.object("FSM", None) {
        let earlier = machine.last_text("transition");
        state.fsm = Fsm {
            state: machine.string("state").unwrap_or_else(|| Fsm::default().state),
            last_transition: machine.text("last_transition").or(earlier),
            timestamp: machine.text("timestamp"),
        };
        machine.finish();
    }
    state.workflow_pending = written_plan(context, "workflow_pending");
    cells
}

fn read_notebook(notebook: StateObject<'_>, cells: u64, state: &mut NotebookState) {
    let metadata = notebook.object("metadata", None);
    let title = notebook.text("title").or_else(|| metadata.as_ref().and_then(|metadata| metadata.text("title")));
    if title.is_some() && title != state.title {
        (state.title, state.title_cell) = (title, None);
    }
    if let Some(metadata) = metadata {
        metadata.ignore(&["title"]);
        metadata.finish();
    }
    let count = notebook.count("cell_count").unwrap_or(cells);
    if count > cells {
        let missing = count - cells;
        let place = notebook.place_of("cells");
        let message = msg!("{missing} cells of the notebook are not in `{place}`, and the session begins without them");
        notebook.report().warn("missing-key", message, notebook.span);
    }
    let kind = notebook.text("last_cell_type");
    state.last_cell_type = state.last_cell_type.take().or(kind);
    state.last_output = notebook.text("last_output").map(|output| cut(&output, MAX_LAST_OUTPUT_BYTES));
    // The id is that of the session, and the other fields follow from the cells.
    notebook.ignore(&["notebook_id", "chapter_count", "section_count", "lastAddedCellId"]);
    notebook.finish();
}

fn read_variables(context: &StateObject<'_>, name: &str, is_of_kernel: bool, state: &mut NotebookState) {
    let Some(node) = context.take(name) else { return };
    let place = context.place_of(name);
    let Some(entries) = node.as_mapping() else {
        let message = msg!("`{place}` must be an object, but this is {}", node.describe());
        context.report().error("wrong-type", message, node.span);
        return;
    };
    for entry in entries {
        let value = entry.value.to_json();
        // A server gets the variables of the kernel among the others.
        if !is_of_kernel && state.kernel_variables.get(&entry.key.value) == Some(&value) {
            continue;
        }
        match state.store_variable(&entry.key.value, value) {
            Ok(()) => {}
            Err(rejection) => {
                context.report().error("out-of-range", msg!("`{place}`: {}", rejection.message), entry.key.span);
                return;
            }
        }
    }
    if is_of_kernel {
        state.kernel_variables = std::mem::take(&mut state.variables).into();
    }
}

fn read_todo_list(context: &StateObject<'_>, state: &mut NotebookState) {
    let place = context.place_of("todo_list");
    let items = context.texts("todo_list");
    if items.len() > MAX_TODO_ITEMS {
        context.report().error("out-of-range", msg!("`{place}` has more than {MAX_TODO_ITEMS} items"), context.span);
    }
    for (item, span) in items {
        if item.len() > MAX_TODO_ITEM_BYTES {
            let message = msg!("an item of `{place}` has more than {MAX_TODO_ITEM_BYTES} bytes");
            context.report().error("out-of-range", message, span);
        }
        state.todo_list.push(item);
    }
}

/// Effects as texts: other programs send objects.
fn effect_texts(effects: &StateObject<'_>, name: &str) -> Vec<String> {
    let text = |node: &Arc<YamlNode>| match node.to_json() {
        Value::String(text) => cut(&text, MAX_EFFECT_BYTES),
        other => cut(&other.to_string(), MAX_EFFECT_BYTES),
    };
    effects.list(name).unwrap_or_default().iter().map(text).collect()
}
