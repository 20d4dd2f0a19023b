//! An action of a script, wherever it stands: in a topic, inside of another action, in a skill, or among what is inserted.

use bcc_engine::error::EngineError;
use bcc_lang::message::msg;
use bcc_lang::source::near::near_miss;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, ProgramSteps, Skill, Topic};

const MOST_IDS: usize = 30;

#[derive(Clone, Copy)]
pub struct FoundAction<'p> {
    /// Its phase; of what stands in a skill, the first one of the script.
    pub phase: &'p Phase,
    /// Its topic, likewise.
    pub topic: &'p Topic,
    pub step: &'p ProgramStep,
    pub skill: Option<&'p Skill>,
    /// Its index among the actions of its topic; none where it stands deeper.
    pub index: Option<usize>,
}

/// Errors: when there is none: says which there are.
pub fn find<'p>(program: &'p Program, id: &str) -> Result<FoundAction<'p>, EngineError> {
    let mut all = actions(program);
    if let Some(number) = all.iter().position(|found| found.step.id == id) {
        return Ok(all.swap_remove(number));
    }
    let ids: Vec<&str> = all.iter().map(|found| found.step.id.as_str()).collect();
    let error = EngineError::usage(msg!("the script has no action `{id}`"));
    Err(match near_miss(id, ids.iter().copied()) {
        Some(near) => error.with_help(msg!("did you mean `{near}`?")),
        None => error.with_help(msg!("its actions are {}", listed(&ids))),
    })
}

/// Names in a row, as many as somebody reads.
pub fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_IDS).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > MOST_IDS { format!("{shown} and {} more", names.len() - MOST_IDS) } else { shown }
}

/// Every action that a script can come to, in its order; those of skills last.
pub fn actions(program: &Program) -> Vec<FoundAction<'_>> {
    let mut all = Vec::new();
    for phase in &program.phases {
        for topic in &phase.topics {
            for (index, step) in topic.steps.iter().enumerate() {
                all.push(FoundAction { phase, topic, step, skill: None, index: Some(index) });
                inside(FoundAction { phase, topic, step, skill: None, index: None }, &mut all);
            }
        }
    }
    let Some((phase, topic)) = program.phases.first().and_then(|phase| Some((phase, phase.topics.first()?))) else {
        return all;
    };
    for skill in program.skills.values() {
        let of = |step| FoundAction { phase, topic, step, skill: Some(skill), index: None };
        for step in skill.steps.iter().chain(skill.inserts.values()) {
            all.push(of(step));
            inside(of(step), &mut all);
        }
    }
    all
}

fn inside<'p>(found: FoundAction<'p>, all: &mut Vec<FoundAction<'p>>) {
    let blocks: Vec<&'p ProgramSteps> = found.step.action.blocks();
    for step in blocks.into_iter().flat_map(|steps| steps.iter()) {
        let deeper = FoundAction { step, index: None, ..found };
        all.push(deeper);
        inside(deeper, all);
    }
}
