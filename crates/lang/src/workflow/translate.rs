//! Translates a state file into the tree of a script: one phase, one topic, and an action for each step. What checks and runs scripts also
//! checks and runs state files.

use std::sync::Arc;

use crate::source::span::Span;
use crate::source::yaml::{YamlEntry, YamlNode};
use crate::workflow::order::execution_order;
use crate::workflow::route_tree::{StepReasons, goto, on_exit};
use crate::workflow::state_file::{StateFile, StateStep};
use crate::workflow::status::StepType;
use crate::workflow::tree::{entry, mapping, sequence, text};

/// The ids of the only phase and topic. Steps are found before them only if their ids differ.
pub const PHASE: &str = "workflow.phase";
pub const TOPIC: &str = "workflow.steps";

/// The fields that belong to the `config` of a command.
const COMMAND: [&str; 9] = ["command", "shell", "cwd", "env", "input", "ok_codes", "requires", "output", "simulate"];
const TOOL: [&str; 2] = ["arguments", "output"];
const SKILL: [&str; 3] = ["skill", "input", "output"];
const APPROVAL: [&str; 6] = ["approvers", "form", "decisions", "rewind_to", "timeout", "on_timeout"];
const PARALLEL: [&str; 2] = ["fail", "max_parallel"];

/// The fields next to `config`.
const OPTIONS: [&str; 4] = ["timeout", "retry", "on_interrupted", "compensate"];

/// The tree of a script, whose root is a mapping with the key `session`.
pub fn script_tree(state: &StateFile) -> Arc<YamlNode> {
    let span = state.id.span;
    let order = execution_order(&state.steps);
    let steps = order.iter().filter_map(|position| state.steps.get(*position));
    let actions = sequence(steps.map(action).collect(), span);
    let topic = vec![entry("topic_id", span, text(TOPIC, span)), entry("actions", span, actions)];
    let topics = sequence(vec![mapping(topic, span)], span);
    let phase = vec![entry("phase_id", span, text(PHASE, span)), entry("topics", span, topics)];
    let phases = sequence(vec![mapping(phase, span)], span);
    let mut session = vec![entry("session_id", span, text(state.id.value.clone(), span))];
    if let Some(variables) = state.variables.as_ref().and_then(|node| node.as_mapping()).filter(|all| !all.is_empty()) {
        let declared = variables.iter().map(|variable| {
            let name = entry("var", variable.key.span, text(variable.key.value.clone(), variable.key.span));
            let value = YamlEntry {
                value: Arc::clone(&variable.value),
                ..entry("value", variable.key.span, Arc::clone(&variable.value))
            };
            mapping(
                vec![name, value],
                Span::new(variable.key.span.start, variable.value.span.end.max(variable.key.span.end)),
            )
        });
        session.push(entry("declare", span, sequence(declared.collect(), span)));
    }
    if let Some(tools) = &state.tools {
        session.push(entry("tools", span, Arc::clone(tools)));
    }
    session.push(entry("phases", span, phases));
    mapping(vec![entry("session", span, mapping(session, span))], span)
}

/// The action that stands for a step or a sub task.
fn action(step: &StateStep) -> Arc<YamlNode> {
    match step.kind {
        StepType::Condition => condition(step),
        // Without sub tasks, which is reported, something must stand for the step.
        StepType::Parallel if step.sub_tasks.is_empty() => approval(step),
        StepType::Parallel => parallel(step),
        StepType::Action if step.node.get("skill").is_some() => {
            let reasons = StepReasons { success: "exit_criteria_met", failures: &[] };
            of_kind(step, "use_skill", picked(step, &SKILL), &reasons)
        }
        StepType::Action if step.node.get("tool").is_some() => tool(step),
        StepType::Action if step.runs() => {
            let reasons = StepReasons { success: "exit_criteria_met", failures: &["failed", "timed_out"] };
            of_kind(step, "command", picked(step, &COMMAND), &reasons)
        }
        StepType::Action | StepType::Approval => approval(step),
    }
}

fn tool(step: &StateStep) -> Arc<YamlNode> {
    let name = step.node.get("tool").map(|name| entry("name", name.span, Arc::clone(name)));
    let config = name.into_iter().chain(picked(step, &TOOL)).collect();
    let failures = &["failed", "rejected", "timed_out"];
    of_kind(step, "tool", config, &StepReasons { success: "exit_criteria_met", failures })
}

/// A decision; also an action that names nothing to run: a person does it, and says when it is done.
fn approval(step: &StateStep) -> Arc<YamlNode> {
    let written =
        |key: &str| step.node.get(key).filter(|node| node.as_scalar().is_some_and(|scalar| !scalar.text.is_empty()));
    let prompt = written("prompt").or_else(|| written("description")).or_else(|| written("name"));
    let prompt = prompt.map_or_else(|| text(step.id.value.clone(), step.id.span), Arc::clone);
    let mut config = vec![entry("prompt", step.id.span, prompt)];
    config.extend(picked(step, &APPROVAL));
    let reasons = StepReasons { success: "approved", failures: &["rejected", "timed_out"] };
    of_kind(step, "approval", config, &reasons)
}

fn condition(step: &StateStep) -> Arc<YamlNode> {
    let cases = step.cases.iter().map(|case| {
        let when = entry("when", case.when.span, Arc::clone(&case.when));
        let span =
            Span::new(case.when.span.start.min(case.target.span.start), case.when.span.end.max(case.target.span.end));
        mapping(vec![when, goto(&case.target, case.target.span)], span)
    });
    let mut config = vec![entry("cases", step.id.span, sequence(cases.collect(), step.id.span))];
    if let Some(otherwise) = step.otherwise.as_ref().or(step.next.as_ref()) {
        config.push(entry("else", otherwise.span, mapping(vec![goto(otherwise, otherwise.span)], otherwise.span)));
    }
    // `next` is the target if no case applies; a route would also be asked then.
    let step = StateStep { next: None, ..step.clone() };
    of_kind(&step, "condition", config, &StepReasons { success: "exit_criteria_met", failures: &[] })
}

fn parallel(step: &StateStep) -> Arc<YamlNode> {
    let span = step.id.span;
    let branches = step.sub_tasks.iter().map(|task| {
        let mut branch = vec![
            entry("id", task.id.span, text(task.id.value.clone(), task.id.span)),
            entry("actions", task.id.span, sequence(vec![action(task)], task.span)),
        ];
        branch.extend(picked(task, &["depends_on"]));
        mapping(branch, task.span)
    });
    let mut config = vec![entry("branches", span, sequence(branches.collect(), span))];
    config.extend(picked(step, &PARALLEL));
    of_kind(step, "parallel", config, &StepReasons { success: "exit_criteria_met", failures: &["branch_failed"] })
}

fn of_kind(step: &StateStep, kind: &str, config: Vec<YamlEntry>, reasons: &StepReasons) -> Arc<YamlNode> {
    let span = step.id.span;
    let mut fields = vec![
        entry("action_type", span, text(kind, span)),
        entry("action_id", span, text(step.id.value.clone(), span)),
        on_exit(step, reasons),
    ];
    if step.kind != StepType::Condition {
        fields.extend(picked(step, &["condition"]));
    }
    let own: &[&str] = if kind == "approval" { &["compensate"] } else { &OPTIONS };
    fields.extend(picked(step, own));
    fields.push(entry("config", span, mapping(config, step.span)));
    mapping(fields, step.span)
}

/// The fields of the step with these names, unless they are null.
fn picked(step: &StateStep, names: &[&str]) -> Vec<YamlEntry> {
    let entries = step.node.as_mapping().unwrap_or_default();
    let is_null = |entry: &YamlEntry| entry.value.as_scalar().is_some_and(|scalar| scalar.value().is_null());
    entries.iter().filter(|entry| names.contains(&entry.key.value.as_str()) && !is_null(entry)).cloned().collect()
}
