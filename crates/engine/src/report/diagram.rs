//! Draws what ran: the steps of a session in their order, as a Mermaid flowchart.

use std::collections::HashMap;
use std::fmt::Write as _;

use bcc_lang::message::language::Language;
use bcc_lang::source::render::mermaid::escape_line;
use bcc_lang::source::render::visible::visible_line;

use crate::report::contents::{ReportedStep, StepStatus};

/// The maximum number of boxes; Mermaid rejects large texts.
const MAX_BOXES: usize = 150;

/// The maximum number of characters of a name in a box.
const MAX_NAME: usize = 40;

/// The style of each status. Colors are pale, so that they are readable in print, and each box also names its status.
const CLASSES: &str = "  classDef done fill:#e6f4ea,stroke:#4f8a5f,color:#1c2733
  classDef failed fill:#fde7e4,stroke:#b4534a,color:#1c2733
  classDef active fill:#fff4d6,stroke:#b58a1b,color:#1c2733
  classDef other fill:#f4f4f4,stroke:#8793a3,color:#1c2733,stroke-dasharray:4 3
";

/// A box: all visits of one action at one place.
struct VisitedStep<'s> {
    step: &'s ReportedStep,
    visits: usize,
}

pub(crate) fn diagram(steps: &[ReportedStep], language: Language) -> String {
    let mut boxes: Vec<VisitedStep<'_>> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // The newest box in each list of actions, by the path of the list; the empty path is the whole session.
    let mut newest: HashMap<String, (usize, StepStatus)> = HashMap::new();
    let mut arrows: Vec<(usize, usize, bool)> = Vec::new();
    let mut left_out = 0;
    for step in steps {
        let path = without_visits(&step.path);
        let known = numbers.get(&path).copied();
        if known.is_none() && boxes.len() >= MAX_BOXES {
            left_out += 1;
            continue;
        }
        let number = known.unwrap_or(boxes.len());
        match boxes.get_mut(number) {
            Some(visited) => *visited = VisitedStep { step, visits: visited.visits + 1 },
            None => boxes.push(VisitedStep { step, visits: 1 }),
        }
        let before = before(&path, &numbers, &newest, &boxes);
        if let Some((from, status)) = before {
            let arrow = (from, number, status == StepStatus::PushedBack);
            if !arrows.contains(&arrow) {
                arrows.push(arrow);
            }
        }
        let list = parent(&path);
        if !list.contains('/') {
            newest.insert(String::new(), (number, step.status));
        }
        newest.insert(list.to_owned(), (number, step.status));
        numbers.insert(path, number);
    }
    write(&boxes, &arrows, left_out, language)
}

/// The box before a step: the newest one of the same list of actions, or else the action that contains the list.
fn before(
    path: &str,
    numbers: &HashMap<String, usize>,
    newest: &HashMap<String, (usize, StepStatus)>,
    boxes: &[VisitedStep<'_>],
) -> Option<(usize, StepStatus)> {
    let mut list = parent(path);
    // The branches of a `parallel` run at the same time: none of their steps follows from another one for sure.
    let around = numbers.get(list).and_then(|number| Some((*number, boxes.get(*number)?)));
    if let Some((number, visited)) = around.filter(|(_, visited)| visited.step.action_type == "parallel") {
        return Some((number, visited.step.status));
    }
    if let Some(found) = newest.get(list) {
        return Some(*found);
    }
    while !list.is_empty() {
        if let Some(number) = numbers.get(list) {
            return Some((*number, boxes.get(*number)?.step.status));
        }
        list = parent(list);
    }
    newest.get("").copied()
}

fn write(boxes: &[VisitedStep<'_>], arrows: &[(usize, usize, bool)], left_out: usize, language: Language) -> String {
    let mut text = String::from("flowchart TB\n");
    for (number, VisitedStep { step, visits }) in boxes.iter().enumerate() {
        let mut status = step.status.label().render(language);
        if *visits > 1 {
            let _ = write!(status, " × {visits}");
        }
        let lines = [name(&step.action_id), name(&step.action_type), status];
        let label = lines.iter().map(|line| escape_line(line)).collect::<Vec<_>>().join("<br/>");
        let class = match step.status {
            StepStatus::Done => "done",
            StepStatus::Failed | StepStatus::Rejected => "failed",
            StepStatus::Waiting | StepStatus::Running | StepStatus::Stopped | StepStatus::PushedBack => "active",
            StepStatus::Skipped | StepStatus::Cancelled | StepStatus::Undone | StepStatus::Left => "other",
        };
        let _ = writeln!(text, "  n{number}[\"{label}\"]:::{class}");
    }
    if left_out > 0 {
        let more = language.format("and {count} more", &[("count", &left_out.to_string())]);
        let _ = writeln!(text, "  more[\"{}\"]:::other", escape_line(&more));
    }
    for (from, to, pushed_back) in arrows {
        let _ = match pushed_back {
            true => {
                let label = escape_line(&StepStatus::PushedBack.label().render(language));
                writeln!(text, "  n{from} -.->|\"{label}\"| n{to}")
            }
            false => writeln!(text, "  n{from} --> n{to}"),
        };
    }
    text + CLASSES
}

fn name(text: &str) -> String {
    let text = visible_line(text);
    match text.chars().count() > MAX_NAME {
        true => text.chars().take(MAX_NAME).chain(['…']).collect(),
        false => text,
    }
}

/// The path without the last component.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The path without the numbers that tell visits apart: `meet#2/ask` is `meet/ask`.
fn without_visits(path: &str) -> String {
    let component = |component: &str| match component.rsplit_once('#') {
        Some((name, visit)) if visit.parse::<u64>().is_ok() => name.to_owned(),
        _ => component.to_owned(),
    };
    path.split('/').map(component).collect::<Vec<_>>().join("/")
}
