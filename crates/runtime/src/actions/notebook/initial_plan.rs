//! The plan with which a session begins: the phases and topics of its script.

use serde_json::Map;

use crate::notebook::state::NotebookState;
use crate::notebook::workflow::{MOST_STAGES, MOST_STEPS, PlanStep, Stage, Workflow};
use crate::program::program::{Phase, Program, Topic};
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;

/// Takes the topic of the turn for the step that the session is at, unless it is there since it entered it.
pub fn enter(turn: &Turn<'_>, state: &mut NotebookState, at: &str) {
    state.enter_home(&turn.phase.id, &turn.topic.id, || plan(turn.program, &turn.names(1)), at);
}

/// The phases and topics of a script as a plan.
fn plan(program: &Program, names: &TemplateNames) -> Workflow {
    let words = |text: Option<&Text>| {
        // A goal that cannot be rendered guides nobody, and decides nothing.
        text.and_then(|text| program.texts.render(text, names).ok()).unwrap_or_default()
    };
    let step = |topic: &Topic| PlanStep {
        id: topic.id.clone(),
        name: topic.name.clone().unwrap_or_else(|| topic.id.clone()),
        goal: words(topic.goal.as_ref()),
        extra: Map::new(),
    };
    let stage = |phase: &Phase| Stage {
        id: phase.id.clone(),
        name: phase.name.clone().unwrap_or_else(|| phase.id.clone()),
        goal: words(phase.goal.as_ref()),
        steps: phase.topics.iter().take(MOST_STEPS).map(step).collect(),
        extra: Map::new(),
    };
    Workflow {
        name: program.name.clone().unwrap_or_else(|| program.id.clone()),
        stages: program.phases.iter().take(MOST_STAGES).map(stage).collect(),
    }
}
