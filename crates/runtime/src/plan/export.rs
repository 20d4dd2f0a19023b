//! Writes a plan for people: a tree for the terminal, a list in Markdown, and a Mermaid flowchart.

use std::fmt::Write as _;

use bcc_lang::source::render::visible::visible_line;
use bcc_lang::source::render::{markdown, mermaid};
use serde_json::Value;

use crate::plan::task::{PlanTask, TaskId, TaskStatus};
use crate::plan::tree::PlanTree;

/// The maximum number of tasks in a flowchart.
const MAX_IN_CHART: usize = 500;

/// The maximum number of dependencies in a flowchart.
const MAX_LINKS: usize = 2_000;

/// The maximum length of a name in a flowchart, in characters.
const MAX_LABEL_CHARS: usize = 80;

/// The maximum length of a result in Markdown, in characters.
const MAX_RESULT_CHARS: usize = 4_000;

const fn mark(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "○",
        TaskStatus::Running => "◐",
        TaskStatus::Completed => "✓",
        TaskStatus::Failed => "✗",
        TaskStatus::Skipped => "–",
    }
}

/// The first characters of a text, with a sign if there are more.
fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A result as text.
fn result_text(result: &Value) -> Option<String> {
    match result {
        Value::Null => None,
        Value::String(text) => Some(shortened(text, MAX_RESULT_CHARS)),
        other => Some(shortened(&other.to_string(), MAX_RESULT_CHARS)),
    }
}

fn dependencies(task: &PlanTask) -> String {
    let ids: Vec<String> = task.dependencies.iter().map(TaskId::to_string).collect();
    if ids.is_empty() { String::new() } else { format!(" ← {}", ids.join(", ")) }
}

/// The tasks as a tree for a terminal, one line each, without control characters.
pub fn text_tree(tree: &PlanTree) -> String {
    let mut text = String::new();
    // Each task with what precedes its line and the lines of its children.
    let mut stack: Vec<(TaskId, String, String)> = Vec::new();
    push_level(tree, None, "", &mut stack);
    while let Some((id, before, below)) = stack.pop() {
        let Some(task) = tree.task(id) else { continue };
        let (mark, name, after) = (mark(task.status), visible_line(&task.name), dependencies(task));
        _ = writeln!(text, "{before}{mark} {id} {name}{after}");
        push_level(tree, Some(id), &below, &mut stack);
    }
    text
}

fn push_level(tree: &PlanTree, parent: Option<TaskId>, indent: &str, stack: &mut Vec<(TaskId, String, String)>) {
    let mut is_last = true;
    for id in tree.children(parent).rev() {
        let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        stack.push((id, format!("{indent}{branch}"), format!("{indent}{below}")));
        is_last = false;
    }
}

/// The plan as Markdown: a nested list with statuses, instructions and results. No text of it becomes markup.
pub fn markdown_list(tree: &PlanTree) -> String {
    let head = tree.head();
    let mut text = format!("# {}\n\n", markdown::escape_line(&head.title));
    for part in [Some(head.goal.as_str()), head.notes.as_deref()].into_iter().flatten() {
        if !part.trim().is_empty() {
            _ = write!(text, "{}\n\n", markdown::escape_lines(part, ""));
        }
    }
    let counts: Vec<String> = tree
        .counts()
        .all()
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{count} {}", status.name()))
        .collect();
    _ = writeln!(text, "Plan {} ({}): {}\n", tree.id(), head.status.name(), counts.join(", "));
    let mut stack: Vec<(TaskId, usize)> = tree.children(None).rev().map(|id| (id, 0)).collect();
    while let Some((id, depth)) = stack.pop() {
        let Some(task) = tree.task(id) else { continue };
        let indent = "  ".repeat(depth);
        let box_mark = if task.status == TaskStatus::Completed { "x" } else { " " };
        let (name, status, after) = (markdown::escape_line(&task.name), task.status.name(), dependencies(task));
        _ = writeln!(text, "{indent}- [{box_mark}] **{name}** ({id}, {status}){after}");
        let within = format!("{indent}  ");
        for part in
            [Some(task.instruction.clone()), result_text(&task.result), task.error.clone()].into_iter().flatten()
        {
            if !part.trim().is_empty() {
                _ = writeln!(text, "\n{within}{}\n", markdown::escape_lines(&part, &within));
            }
        }
        stack.extend(tree.children(Some(id)).rev().map(|id| (id, depth.saturating_add(1))));
    }
    text
}

/// The plan as a Mermaid flowchart: solid lines to what a task contains, dotted ones to what depends on it. If there are too many tasks,
/// those of the upper levels are shown.
pub fn mermaid_chart(tree: &PlanTree) -> String {
    let mut text = "flowchart TD\n".to_owned();
    let label = |name: &str| mermaid::escape_line(&visible_line(&shortened(name, MAX_LABEL_CHARS)));
    _ = writeln!(text, "  plan[[\"{}\"]]", label(&tree.head().title));
    let mut shown: Vec<TaskId> = Vec::new();
    let mut level: Vec<TaskId> = tree.children(None).take(MAX_IN_CHART).collect();
    while !level.is_empty() && shown.len() < MAX_IN_CHART {
        shown.extend(level.iter().take(MAX_IN_CHART.saturating_sub(shown.len())));
        level = level.into_iter().flat_map(|id| tree.children(Some(id))).take(MAX_IN_CHART).collect();
    }
    for task in shown.iter().filter_map(|id| tree.task(*id)) {
        let (id, name, status) = (task.id, label(&task.name), task.status.name());
        _ = writeln!(text, "  t{id}[\"{id} {name}\"]:::{status}");
        let parent = task.parent.map_or_else(|| "plan".to_owned(), |parent| format!("t{parent}"));
        _ = writeln!(text, "  {parent} --> t{id}");
    }
    let is_shown: std::collections::HashSet<TaskId> = shown.iter().copied().collect();
    let tasks = shown.iter().filter_map(|id| tree.task(*id));
    let links = tasks.flat_map(|task| task.dependencies.iter().map(move |dependency| (*dependency, task.id)));
    for (dependency, id) in links.filter(|(dependency, _)| is_shown.contains(dependency)).take(MAX_LINKS) {
        _ = writeln!(text, "  t{dependency} -.-> t{id}");
    }
    if let Some(left_out) = tree.len().checked_sub(shown.len()).filter(|left_out| *left_out > 0) {
        _ = writeln!(text, "  more[/\"… {left_out}\"/]");
    }
    for (status, style) in [
        (TaskStatus::Running, "fill:#fff3bf,stroke:#f08c00"),
        (TaskStatus::Completed, "fill:#d3f9d8,stroke:#2f9e44"),
        (TaskStatus::Failed, "fill:#ffe3e3,stroke:#e03131"),
        (TaskStatus::Skipped, "fill:#f1f3f5,stroke:#868e96,stroke-dasharray: 4"),
    ] {
        if tree.counts().of(status) > 0 {
            _ = writeln!(text, "  classDef {} {style}", status.name());
        }
    }
    text
}
