//! From the instance path of an event back to the parts of the program that it leads through.

use std::sync::Arc;

use serde_json::Value;

use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::program::{Program, ProgramStep, ProgramSteps, Skill};
use bcc_runtime::run::frames::id_of;

#[derive(Clone, Copy)]
pub enum TrailPart<'p> {
    Action(&'p ProgramStep),
    /// A skill that was called or inserted.
    Skill(&'p Skill),
    /// Something inserted that holds one action.
    Single,
    /// An action that a plan put in: the program does not have it.
    Planned,
}

/// A part with the file that it is written in, and its own instance path.
pub struct TrailStep<'p> {
    pub part: TrailPart<'p>,
    pub file: &'p Arc<SourceFile>,
    /// The path up to it, which tells visits apart.
    pub path: String,
}

/// The parts below the topic that the `location` of an event leads through, the action of the event last; `None` for an event
/// that is about no action.
pub fn trail<'p>(program: &'p Program, location: &Value) -> Option<Vec<TrailStep<'p>>> {
    let text = |key: &str| location.get(key).and_then(Value::as_str);
    let (action, path) = (text("action_id")?, text("path")?);
    let components: Vec<&str> = path.split('/').collect();
    if components.last().map(|last| id_of(last)) != Some(action) {
        return None;
    }
    let topic = text("topic_id").and_then(|id| {
        let mut topics = program.phases.iter().flat_map(|phase| &phase.topics);
        topics.find(|topic| topic.id == id)
    });
    // What is inserted after the last phase stands in no topic.
    let below = usize::from(text("topic_id").is_some());
    let lists = topic.into_iter().map(|topic| &topic.steps).collect();
    let mut parts = Vec::new();
    let here = TrailPosition { lists, skill: None, file: &program.file };
    follow(program, &here, components.get(below..)?, &mut parts).then_some(())?;
    let passed = parts.into_iter().enumerate().map(|(number, (part, file))| {
        let path = components.get(..=below + number).unwrap_or_default().join("/");
        TrailStep { part, file, path }
    });
    Some(passed.collect())
}

struct TrailPosition<'p> {
    /// The lists that its next part may stand in.
    lists: Vec<&'p ProgramSteps>,
    skill: Option<&'p Skill>,
    file: &'p Arc<SourceFile>,
}

/// Follows the rest of a path. A part is an action that stands here, else something inserted, else what only a plan knows; when
/// the rest does not fit, it was not that.
fn follow<'p>(
    program: &'p Program,
    here: &TrailPosition<'p>,
    rest: &[&str],
    parts: &mut Vec<(TrailPart<'p>, &'p Arc<SourceFile>)>,
) -> bool {
    let Some((first, rest)) = rest.split_first() else {
        return matches!(parts.last(), Some((TrailPart::Action(_) | TrailPart::Planned, _)));
    };
    let id = id_of(first);
    let mut goes_on = |part: TrailPart<'p>, file: &'p Arc<SourceFile>, next: &TrailPosition<'p>| {
        parts.push((part, file));
        let fits = follow(program, next, rest, parts);
        if !fits {
            parts.pop();
        }
        fits
    };
    if let Some(step) = here.lists.iter().flat_map(|steps| steps.iter()).find(|step| step.id == id) {
        let next = TrailPosition { lists: step.action.blocks(), ..*here };
        if goes_on(TrailPart::Action(step), here.file, &next) {
            return true;
        }
    }
    if let Some(skill) = program.skills.get(id) {
        let file = skill.file.as_ref().unwrap_or(&program.file);
        let next = TrailPosition { lists: vec![&skill.steps], skill: Some(skill), file };
        if goes_on(TrailPart::Skill(skill), file, &next) {
            return true;
        }
    }
    // Inside of a skill its own action is inserted; what a trigger inserts is the script's, wherever it fires.
    let own = here.skill.and_then(|skill| skill.inserts.get(id)).map(|step| (step, here.skill, here.file));
    let scripts = program.inserts.get(id).map(|step| (step, None, &program.file));
    if let Some((step, skill, file)) = own.or(scripts)
        && let Some((again, below)) = rest.split_first()
        && id_of(again) == id
    {
        parts.extend([(TrailPart::Single, file), (TrailPart::Action(step), file)]);
        let next = TrailPosition { lists: step.action.blocks(), skill, file };
        if follow(program, &next, below, parts) {
            return true;
        }
        parts.truncate(parts.len().saturating_sub(2));
    }
    let next = TrailPosition { lists: vec![], ..*here };
    parts.push((TrailPart::Planned, here.file));
    let fits = follow(program, &next, rest, parts);
    if !fits {
        parts.pop();
    }
    fits
}
