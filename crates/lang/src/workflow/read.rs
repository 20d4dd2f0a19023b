//! Reads a YAML or JSON tree into a [`StateFile`], and reports what is wrong with it.

use std::cell::Cell;
use std::sync::Arc;

use crate::message::msg;

use crate::script::fields::{Fields, is_null, shortened};
use crate::script::findings::Findings;
use crate::script::read::id;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};
use crate::workflow::circles::check_circles;
use crate::workflow::fields::{FILE_FIELDS, STEP_FIELDS, report_near_misses};
use crate::workflow::order::check_dependencies;
use crate::workflow::state_file::{OnStepFailure, StateCase, StateFile, StateStep};
use crate::workflow::status::{StateStatus, StepType, WORKFLOW_STATUSES};
use crate::workflow::targets::{check_targets, drop_unknown};

/// Reads a state file. What could be read is returned, so that it can be checked further; `None` if its parts cannot be told apart: ids
/// are missing or invalid, or used twice.
pub fn state_file(file: &Arc<SourceFile>, root: &YamlNode, findings: &Findings) -> Option<StateFile> {
    let found = Findings::new();
    let state = read_checked(file, root, &found);
    findings.extend(found.into_vec().into_iter().map(with_quotes));
    state
}

/// The diagnostic with fixes that keep double quotes, which JSON needs.
fn with_quotes(mut diagnostic: Diagnostic) -> Diagnostic {
    let file = Arc::clone(&diagnostic.file);
    for edit in diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits) {
        if file.slice(edit.span).starts_with('"') && !edit.text.starts_with(['"', '[', '{']) {
            edit.text = serde_json::Value::from(edit.text.as_str()).to_string();
        }
    }
    diagnostic
}

fn read_checked(file: &Arc<SourceFile>, root: &YamlNode, findings: &Findings) -> Option<StateFile> {
    let fields = Fields::of(root, "the state file", file, findings)?;
    let sound = Cell::new(true);
    let errors = findings.errors();
    let workflow_id = id(&fields, "workflow_id");
    sound.set(findings.errors() == errors && !workflow_id.value.is_empty());
    let kind = fields.text("type").map(|words| words.text);
    let status = present(&fields, "status").then(|| fields.choice("status", &WORKFLOW_STATUSES)).flatten();
    let current_step = present(&fields, "current_step").then(|| fields.name("current_step")).flatten();
    let variables = fields.take("variables").filter(|node| !is_null(node)).filter(|node| {
        let is_mapping = node.as_mapping().is_some();
        if !is_mapping {
            let help = "write `variables: { name: value }`";
            fields.report_wrong_type("variables", "a mapping of names to values", node, help);
        }
        is_mapping
    });
    let tools = fields.take("tools").filter(|node| !is_null(node)).cloned();
    let items = fields.required_list("steps").unwrap_or_default();
    let steps: Vec<StateStep> =
        items.iter().filter_map(|item| step(item, StepLevel::Step, file, findings, &sound)).collect();
    report_near_misses(&fields, &FILE_FIELDS);
    drop(fields);
    let mut state = StateFile {
        file: Arc::clone(file),
        id: workflow_id,
        kind,
        status,
        current_step: current_step.filter(|step| !step.value.is_empty()),
        variables: variables.cloned(),
        tools,
        steps,
    };
    check_ids(&state, findings, &sound);
    if !sound.get() || state.steps.is_empty() {
        return None;
    }
    check_targets(&state, findings);
    drop_unknown(&mut state);
    check_dependencies(&state, findings);
    check_circles(&state, findings);
    Some(state)
}

/// Whether the field is written and not null, which means the same as absent in files of other programs.
fn present(fields: &Fields<'_>, name: &'static str) -> bool {
    fields.take(name).is_some_and(|node| !is_null(node))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepLevel {
    Step,
    SubTask,
}

fn step(
    item: &Arc<YamlNode>,
    level: StepLevel,
    file: &Arc<SourceFile>,
    findings: &Findings,
    sound: &Cell<bool>,
) -> Option<StateStep> {
    let what = if level == StepLevel::Step { "a step" } else { "a sub task" };
    let Some(fields) = Fields::of(item, what, file, findings) else {
        sound.set(false);
        return None;
    };
    let errors = findings.errors();
    let id = id(&fields, "id");
    if findings.errors() > errors || id.value.is_empty() {
        sound.set(false);
    }
    let name = present(&fields, "name").then(|| fields.text("name")).flatten().map(|words| words.text);
    let kind = step_type(&fields, level);
    let names = StateStatus::ALL.map(StateStatus::name);
    let status = present(&fields, "status").then(|| fields.choice("status", &names)).flatten();
    let status = status.and_then(StateStatus::parse).unwrap_or_default();
    let next = target(&fields, "next");
    let depends_on = if present(&fields, "depends_on") { fields.texts("depends_on") } else { vec![] };
    let depends_on = depends_on.into_iter().map(|words| Spanned { value: words.text, span: words.node.span }).collect();
    let on_failure = on_failure(&fields);
    let (cases, otherwise) = cases(&fields, kind);
    let sub_tasks = sub_tasks(&fields, (kind, level), file, findings, sound);
    check_fields_of_type(&fields, kind, level);
    report_near_misses(&fields, &STEP_FIELDS);
    Some(StateStep {
        id,
        name,
        kind,
        status,
        next,
        cases,
        otherwise,
        depends_on,
        on_failure,
        sub_tasks,
        node: Arc::clone(item),
        span: item.span,
    })
}

/// The type of a step; without `type`, what its other fields show.
fn step_type(fields: &Fields<'_>, level: StepLevel) -> StepType {
    let inferred = match () {
        () if fields.has("sub_tasks") => StepType::Parallel,
        () if fields.has("cases") => StepType::Condition,
        () => StepType::Action,
    };
    if !present(fields, "type") {
        return inferred;
    }
    if level == StepLevel::SubTask {
        return fields.choice("type", &["action", "approval"]).and_then(StepType::parse).unwrap_or(StepType::Action);
    }
    fields.choice("type", &StepType::ALL.map(StepType::name)).and_then(StepType::parse).unwrap_or(inferred)
}

fn target(fields: &Fields<'_>, name: &'static str) -> Option<Spanned<String>> {
    present(fields, name).then(|| fields.name(name)).flatten()
}

fn on_failure(fields: &Fields<'_>) -> OnStepFailure {
    let help = "write `on_failure: stop`, `on_failure: continue`, or `on_failure: { goto: STEP }`";
    let Some(node) = fields.take("on_failure").filter(|node| !is_null(node)) else { return OnStepFailure::Stop };
    if let NodeKind::Mapping(_) = &node.kind {
        let goto = fields.inner(node, "`on_failure`").and_then(|inner| {
            let goto = inner.required_text("goto").map(|words| Spanned { value: words.text, span: words.node.span });
            inner.finish();
            goto
        });
        return goto.map_or(OnStepFailure::Stop, OnStepFailure::Goto);
    }
    match node.as_scalar().map(|scalar| scalar.text.as_str()) {
        Some("stop") => OnStepFailure::Stop,
        Some("continue") => OnStepFailure::Continue,
        other => {
            let text = other.unwrap_or_default();
            fields.not_a_choice("on_failure", text, &["stop", "continue"], node.span, help);
            OnStepFailure::Stop
        }
    }
}

/// `cases` and `else` of a condition.
fn cases(fields: &Fields<'_>, kind: StepType) -> (Vec<StateCase>, Option<Spanned<String>>) {
    if kind != StepType::Condition {
        return (vec![], None);
    }
    let items = fields.required_list("cases").unwrap_or_default();
    let mut cases = Vec::new();
    for item in items {
        let Some(inner) = fields.inner(item, "a case") else { continue };
        let when = inner.required("when");
        let target = case_target(&inner);
        if let (Some(when), Some(target)) = (when, target) {
            cases.push(StateCase { when: Arc::clone(when), target });
        }
    }
    let otherwise = fields.take("else").filter(|node| !is_null(node)).and_then(|node| match &node.kind {
        NodeKind::Mapping(_) => fields.inner(node, "`else`").and_then(|inner| case_target(&inner)),
        _ => fields.name("else"),
    });
    (cases, otherwise)
}

/// `next` of a case, which may also be written as `goto`, as in a script.
fn case_target(case: &Fields<'_>) -> Option<Spanned<String>> {
    if case.has("goto") && !case.has("next") {
        return case.name("goto");
    }
    case.required_text("next").map(|words| Spanned { value: words.text, span: words.node.span })
}

fn sub_tasks(
    fields: &Fields<'_>,
    (kind, level): (StepType, StepLevel),
    file: &Arc<SourceFile>,
    findings: &Findings,
    sound: &Cell<bool>,
) -> Vec<StateStep> {
    let written = fields.entry("sub_tasks").filter(|entry| !is_null(&entry.value));
    if kind != StepType::Parallel || level == StepLevel::SubTask {
        if let Some(entry) = written.filter(|entry| entry.value.as_sequence().is_none_or(|items| !items.is_empty())) {
            let message = msg!("`sub_tasks` has no effect: only a step of the type `parallel` has sub tasks");
            let help = match level {
                StepLevel::Step => "write `type: parallel`, or remove `sub_tasks`",
                StepLevel::SubTask => "sub tasks cannot have sub tasks: put them all into one step",
            };
            fields.error("conflicting-fields", message, entry.key.span, help);
        }
        return vec![];
    }
    let items = fields.required_list("sub_tasks").unwrap_or_default();
    items.iter().filter_map(|item| step(item, StepLevel::SubTask, file, findings, sound)).collect()
}

/// Reports fields that a step of this type cannot have.
fn check_fields_of_type(fields: &Fields<'_>, kind: StepType, level: StepLevel) {
    const RUN: [&str; 4] = ["command", "skill", "tool", "simulate"];
    let written = |name: &'static str| fields.entries().iter().find(|entry| entry.key.value == name);
    let named: Vec<&'static str> = RUN.into_iter().filter(|name| present(fields, name)).collect();
    if let (true, Some(first)) = (kind != StepType::Action, named.first()) {
        let span = written(first).map_or(fields.span(), |entry| entry.key.span);
        let message = msg!("`{first}` has no effect in a step of the type `{}`", kind.name());
        fields.error("conflicting-fields", message, span, "only a step of the type `action` runs something");
    }
    // `simulate` with a command is the result of the command in tests.
    let conflicting = named.iter().copied().filter(|name| *name != "simulate").nth(1);
    if let (Some(second), Some(first)) = (conflicting, named.first()) {
        let span = written(second).map_or(fields.span(), |entry| entry.key.span);
        let message = msg!("the step has both `{first}` and `{second}`");
        fields.error("conflicting-fields", message, span, "keep one, and write another step for the other");
    }
    if let (StepLevel::SubTask, Some(entry)) = (level, written("next").filter(|entry| !is_null(&entry.value))) {
        let help = "write `next` in the step, which is done when all its sub tasks are";
        fields.error("conflicting-fields", "a sub task cannot have `next`", entry.key.span, help);
    }
}

/// Ids are unique among all steps and sub tasks: progress is written to the step with the id.
fn check_ids(state: &StateFile, findings: &Findings, sound: &Cell<bool>) {
    let mut first: std::collections::HashMap<&str, Span> = std::collections::HashMap::new();
    for step in state.all().filter(|step| !step.id.value.is_empty()) {
        let Some(earlier) = first.insert(&step.id.value, step.id.span) else { continue };
        sound.set(false);
        let message = msg!("the id `{}` is used twice", shortened(&step.id.value));
        let diagnostic = Diagnostic::error("duplicate-id", message, &state.file, step.id.span);
        let help = "ids are unique among all steps and sub tasks: rename one of them";
        findings.report(diagnostic.with_help(help).with_related("it is used here first", &state.file, earlier));
    }
}
