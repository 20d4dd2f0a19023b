//! The initial plan of a session: the phases and topics of its script.

use serde_json::Map;

use crate::notebook::state::NotebookState;
use crate::notebook::workflow::{MAX_STAGES, MAX_STEPS, PlanStep, Stage, Workflow};
use crate::program::program::{Phase, Program, Topic};
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;

/// Moves the location to the step of the current topic, unless the topic was already entered.
pub fn enter(turn: &Turn<'_>, state: &mut NotebookState, at: &str) {
    state.enter_topic(&turn.phase.id, &turn.topic.id, || plan(turn.program, &turn.names(1)), at);
}

/// The phases and topics of a script as a plan.
fn plan(program: &Program, names: &TemplateNames) -> Workflow {
    let rendered = |text: Option<&Text>| {
        // A goal that cannot be rendered is omitted; it is only a hint.
        text.and_then(|text| program.texts.render(text, names).ok()).unwrap_or_default()
    };
    let step = |topic: &Topic| PlanStep {
        id: topic.id.clone(),
        name: topic.name.clone().unwrap_or_else(|| topic.id.clone()),
        goal: rendered(topic.goal.as_ref()),
        extra: Map::new(),
    };
    let stage = |phase: &Phase| Stage {
        id: phase.id.clone(),
        name: phase.name.clone().unwrap_or_else(|| phase.id.clone()),
        goal: rendered(phase.goal.as_ref()),
        steps: phase.topics.iter().take(MAX_STEPS).map(step).collect(),
        extra: Map::new(),
    };
    Workflow {
        name: program.name.clone().unwrap_or_else(|| program.id.clone()),
        stages: program.phases.iter().take(MAX_STAGES).map(stage).collect(),
    }
}
