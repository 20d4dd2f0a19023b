//! Where in its plan a session is, as its script has it: the plan begins as the phases and topics of the script, and entering
//! another topic moves the location there.

use serde_json::Map;

use crate::notebook::state::{MOST_COMPLETED, STEP_RUNNING, State};
use crate::notebook::workflow::{MOST_STAGES, MOST_STEPS, Stage, Step, Workflow};
use crate::program::program::{Phase, Program, Topic};
use crate::program::turn::Turn;
use crate::prompt::names::Names;
use crate::prompt::text::Text;

/// Takes the topic of the turn for the step that the session is at, unless it is there since it entered it.
pub fn enter(turn: &Turn<'_>, state: &mut State, at: &str) {
    let home = format!("{}/{}", turn.phase.id, turn.topic.id);
    if state.workflow.is_none() {
        state.workflow = Some(plan(turn.program, &turn.names(1)));
    }
    if state.location.home == home {
        return;
    }
    let location = &mut state.location;
    let earlier = std::mem::replace(&mut location.home, home);
    // What the plan itself moved on from is no longer where the script was.
    let was = earlier.split_once('/').filter(|(stage, step)| {
        location.stage_id.as_deref() == Some(*stage) && location.step_id.as_deref() == Some(*step)
    });
    if let Some((stage, step)) = was {
        complete(&mut location.completed_steps, step);
        if stage != turn.phase.id {
            complete(&mut location.completed_stages, stage);
        }
    }
    location.completed_steps.retain(|step| *step != turn.topic.id);
    location.completed_stages.retain(|stage| *stage != turn.phase.id);
    location.stage_id = Some(turn.phase.id.clone());
    location.step_id = Some(turn.topic.id.clone());
    location.behavior_id = None;
    location.behavior_iteration = 0;
    STEP_RUNNING.clone_into(&mut state.fsm.state);
    state.fsm.last_transition = Some("START_STEP".to_owned());
    state.fsm.timestamp = Some(at.to_owned());
}

fn complete(completed: &mut Vec<String>, id: &str) {
    if !completed.iter().any(|other| other == id) {
        completed.push(id.to_owned());
    }
    let over = completed.len().saturating_sub(MOST_COMPLETED);
    completed.drain(..over);
}

/// The phases and topics of a script as a plan.
fn plan(program: &Program, names: &Names) -> Workflow {
    let words = |text: Option<&Text>| {
        // A goal that cannot be rendered guides nobody, and decides nothing.
        text.and_then(|text| program.texts.render(text, names).ok()).unwrap_or_default()
    };
    let step = |topic: &Topic| Step {
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
