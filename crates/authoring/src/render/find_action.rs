//! Finds an action anywhere in a script: in a topic, inside another action, in a skill, or among insertions.

use bcc_engine::error::EngineError;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::near_miss;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, ProgramSteps, Skill, Topic};

const MAX_IDS: usize = 30;

#[derive(Clone, Copy)]
pub struct FoundAction<'p> {
    /// Its phase; for an action of a skill, the first phase of the script.
    pub phase: &'p Phase,
    /// Its topic; for an action of a skill, the first one of the script.
    pub topic: &'p Topic,
    pub step: &'p ProgramStep,
    pub skill: Option<&'p Skill>,
    /// Its index among the actions of its topic; `None` for nested actions.
    pub index: Option<usize>,
}

/// Errors: if there is no such action, with those that exist.
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

/// A list of names, limited in length.
pub fn listed(names: &[&str]) -> Message {
    let shown = Message::names(names.iter().take(MAX_IDS));
    if names.len() > MAX_IDS { msg!("{shown} and {} more", names.len() - MAX_IDS) } else { shown }
}

/// All reachable actions of a script, in order; those of skills are last.
pub fn actions(program: &Program) -> Vec<FoundAction<'_>> {
    let mut all = Vec::new();
    for phase in &program.phases {
        for topic in &phase.topics {
            for (index, step) in topic.steps.iter().enumerate() {
                all.push(FoundAction { phase, topic, step, skill: None, index: Some(index) });
                add_nested(FoundAction { phase, topic, step, skill: None, index: None }, &mut all);
            }
            for step in topic.finally.iter() {
                all.push(FoundAction { phase, topic, step, skill: None, index: None });
                add_nested(FoundAction { phase, topic, step, skill: None, index: None }, &mut all);
            }
        }
    }
    let Some((phase, topic)) = program.phases.first().and_then(|phase| Some((phase, phase.topics.first()?))) else {
        return all;
    };
    for skill in program.skills.values() {
        let in_skill = |step| FoundAction { phase, topic, step, skill: Some(skill), index: None };
        for step in skill.steps.iter().chain(skill.inserts.values()) {
            all.push(in_skill(step));
            add_nested(in_skill(step), &mut all);
        }
    }
    all
}

fn add_nested<'p>(found: FoundAction<'p>, all: &mut Vec<FoundAction<'p>>) {
    let blocks: Vec<&'p ProgramSteps> = found.step.lists();
    for step in blocks.into_iter().flat_map(|steps| steps.iter()) {
        let nested = FoundAction { step, index: None, ..found };
        all.push(nested);
        add_nested(nested, all);
    }
}
