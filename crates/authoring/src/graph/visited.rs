//! Marks the actions of a graph with what a session did.

use std::collections::{BTreeMap, BTreeSet};

use bcc_engine::report::contents::StepStatus;

use crate::graph::script_graph::{GraphNodeKind, NodeState, ScriptGraph};

/// A step of a session: its location, its action, and its status.
pub type VisitedAction = (String, String, StepStatus);

/// Gives each action of the graph the state of its newest visit. `steps` are in the order in which they started.
pub fn mark_visited(graph: &mut ScriptGraph, steps: &[VisitedAction]) {
    graph.marked = true;
    let is_skill = |kind| kind == GraphNodeKind::Skill;
    let skills: BTreeSet<String> =
        graph.parts.iter().filter(|part| is_skill(part.kind)).map(|part| part.id.clone()).collect();
    // The newest step of each action, by the innermost skill that contains it.
    let mut newest: BTreeMap<(Option<&str>, &str), NodeState> = BTreeMap::new();
    for (path, action, status) in steps {
        let components = path.split('/').rev().skip(1).map(|component| component.split('#').next().unwrap_or_default());
        let skill = components.into_iter().find(|component| skills.contains(*component));
        newest.insert((skill, action.as_str()), state_of(*status));
    }
    let containers: Vec<Option<String>> = (0..graph.parts.len()).map(|number| skill_around(graph, number)).collect();
    for (part, skill) in graph.parts.iter_mut().zip(containers).filter(|(part, _)| part.is_action()) {
        let found = newest.get(&(skill.as_deref(), part.id.as_str()));
        part.state = Some(found.copied().unwrap_or(NodeState::NotReached));
    }
}

fn skill_around(graph: &ScriptGraph, number: usize) -> Option<String> {
    let mut parent = graph.parts.get(number)?.parent;
    while let Some(part) = parent.and_then(|number| graph.parts.get(number)) {
        if part.kind == GraphNodeKind::Skill {
            return Some(part.id.clone());
        }
        parent = part.parent;
    }
    None
}

fn state_of(status: StepStatus) -> NodeState {
    match status {
        StepStatus::Done => NodeState::Done,
        StepStatus::Failed | StepStatus::Rejected => NodeState::Failed,
        StepStatus::Waiting | StepStatus::Running | StepStatus::Stopped | StepStatus::PushedBack => NodeState::Active,
        StepStatus::Skipped | StepStatus::Cancelled | StepStatus::Undone | StepStatus::Left => NodeState::Left,
    }
}
