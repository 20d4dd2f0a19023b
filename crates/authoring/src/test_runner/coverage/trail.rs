//! Resolves the instance path of an event to the parts of the program.

use std::sync::Arc;

use serde_json::Value;

use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::program::{Program, ProgramStep, ProgramSteps, Skill};
use bcc_runtime::run::frames::id_of;

#[derive(Clone, Copy)]
pub(crate) enum TrailPart<'p> {
    Action(&'p ProgramStep),
    /// A called or inserted skill.
    Skill(&'p Skill),
    /// An insertion that contains a single action.
    Single,
    /// An action that a plan added: the program does not contain it.
    Planned,
}

/// A part, with its file and its instance path.
pub(crate) struct TrailStep<'p> {
    pub part: TrailPart<'p>,
    pub file: &'p Arc<SourceFile>,
    /// The path up to it, which identifies the visit.
    pub path: String,
}

/// The parts on the path of an event's `location` below the topic, ending with the action of the event; `None` for an
/// event without an action.
pub(crate) fn trail<'p>(program: &'p Program, location: &Value) -> Option<Vec<TrailStep<'p>>> {
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
    // Insertions after the last phase belong to no topic.
    let below = usize::from(text("topic_id").is_some());
    let lists = topic.into_iter().flat_map(|topic| [&topic.steps, &topic.finally]).collect();
    let mut parts = Vec::new();
    let position = TrailPosition { lists, skill: None, file: &program.file };
    follow(program, &position, components.get(below..)?, &mut parts).then_some(())?;
    let passed = parts.into_iter().enumerate().map(|(number, (part, file))| {
        let path = components.get(..=below + number).unwrap_or_default().join("/");
        TrailStep { part, file, path }
    });
    Some(passed.collect())
}

struct TrailPosition<'p> {
    /// The lists that may contain the next part.
    lists: Vec<&'p ProgramSteps>,
    skill: Option<&'p Skill>,
    file: &'p Arc<SourceFile>,
}

/// Resolves the rest of a path. A part is an action in the current lists, or an insertion, or a planned action; an
/// alternative is discarded if the rest does not match.
fn follow<'p>(
    program: &'p Program,
    position: &TrailPosition<'p>,
    rest: &[&str],
    parts: &mut Vec<(TrailPart<'p>, &'p Arc<SourceFile>)>,
) -> bool {
    let Some((first, rest)) = rest.split_first() else {
        return matches!(parts.last(), Some((TrailPart::Action(_) | TrailPart::Planned, _)));
    };
    let id = id_of(first);
    let mut continues = |part: TrailPart<'p>, file: &'p Arc<SourceFile>, next: &TrailPosition<'p>| {
        parts.push((part, file));
        let fits = follow(program, next, rest, parts);
        if !fits {
            parts.pop();
        }
        fits
    };
    if let Some(step) = position.lists.iter().flat_map(|steps| steps.iter()).find(|step| step.id == id) {
        let next = TrailPosition { lists: step.lists(), ..*position };
        if continues(TrailPart::Action(step), position.file, &next) {
            return true;
        }
    }
    if let Some(skill) = program.skills.get(id) {
        let file = skill.file.as_ref().unwrap_or(&program.file);
        let next = TrailPosition { lists: vec![&skill.steps], skill: Some(skill), file };
        if continues(TrailPart::Skill(skill), file, &next) {
            return true;
        }
    }
    // Inside a skill, its own insertions take precedence; a trigger inserts actions of the script wherever it fires.
    let own = position.skill.and_then(|skill| skill.inserts.get(id)).map(|step| (step, position.skill, position.file));
    let scripts = program.inserts.get(id).map(|step| (step, None, &program.file));
    if let Some((step, skill, file)) = own.or(scripts)
        && let Some((repeated, below)) = rest.split_first()
        && id_of(repeated) == id
    {
        parts.extend([(TrailPart::Single, file), (TrailPart::Action(step), file)]);
        let next = TrailPosition { lists: step.lists(), skill, file };
        if follow(program, &next, below, parts) {
            return true;
        }
        parts.truncate(parts.len().saturating_sub(2));
    }
    let next = TrailPosition { lists: vec![], ..*position };
    parts.push((TrailPart::Planned, position.file));
    let fits = follow(program, &next, rest, parts);
    if !fits {
        parts.pop();
    }
    fits
}
