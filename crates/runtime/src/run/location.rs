//! Where a session stands, told to people: every level from the phase to the action, and what waits outside.

use crate::program::event::mask;
use crate::run::frames::{Frame, FrameTarget, Insertion, component, id_of, lineage, parent, public_path};
use crate::run::routes::MOST_HOPS;
use crate::run::session::Session;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    Phase,
    /// A topic, or one element's run of it.
    Topic,
    /// A list of actions inside an action.
    Block,
    Skill,
    /// One action of the script that was inserted.
    Single,
    Action,
}

/// One level of where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationLevel {
    pub what: LocationKind,
    pub id: String,
    /// The name of a phase or topic, the kind of an action.
    pub name: Option<String>,
    /// The number of this visit, from 1.
    pub visit: u64,
    /// What paths call the element that the topic runs for.
    pub element: Option<String>,
    /// The number of that element, from 1.
    pub number: u32,
    /// The round of an action that counts rounds.
    pub round: Option<u32>,
    /// Its last round, where that is known.
    pub most_rounds: Option<u32>,
    /// How often a route began the action again.
    pub retries: u32,
    /// What brought an insertion here, and what follows it.
    pub brought_by: Option<String>,
    /// Whether an answer is kept for the action that something stepped in front of.
    pub holds_answer: bool,
    /// Whether a monitor's advice waits for the next turn in it.
    pub advised: bool,
}

/// The actions of the topic that a session is in, as it has them now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOutline {
    pub path: String,
    /// The id and the kind of each action.
    pub actions: Vec<(String, &'static str)>,
    /// Which of them is next or running.
    pub next: usize,
}

impl Session {
    /// Every level from the phase to the innermost frame.
    pub fn levels(&self) -> Vec<LocationLevel> {
        let leaf = self.frames.leaf();
        lineage(&leaf).filter_map(|key| self.level(key, self.frames.get(key)?)).collect()
    }

    fn level(&self, key: &str, frame: &Frame) -> Option<LocationLevel> {
        let component = component(key);
        let id = id_of(component).to_owned();
        let (named, visit) = component.split_once('#').unwrap_or((component, ""));
        let mut level = LocationLevel {
            what: LocationKind::Action,
            name: None,
            visit: visit.parse().unwrap_or(1),
            element: named.split_once('@').map(|(_, element)| element.to_owned()),
            number: self.frames.get(parent(key)).map_or(0, |above| above.taken),
            round: frame.round,
            most_rounds: None,
            retries: frame.retries,
            brought_by: frame.insertion.as_ref().map(|insertion| brought_by(insertion, id_of(component_above(key)))),
            holds_answer: frame.held.is_some(),
            advised: frame.advice.is_some(),
            id,
        };
        let phases = &self.program.phases;
        match &frame.at {
            FrameTarget::Session => return None,
            FrameTarget::Phase => {
                level.what = LocationKind::Phase;
                level.name = phases.iter().find(|phase| phase.id == level.id).and_then(|phase| phase.name.clone());
            }
            FrameTarget::Topic => {
                level.what = LocationKind::Topic;
                let mut topics = phases.iter().flat_map(|phase| &phase.topics);
                level.name = topics.find(|topic| topic.id == level.id).and_then(|topic| topic.name.clone());
            }
            FrameTarget::Block(block) => {
                level.what = LocationKind::Block;
                level.id.clone_from(block);
            }
            FrameTarget::Skill(_) => level.what = LocationKind::Skill,
            FrameTarget::Single(_) => level.what = LocationKind::Single,
            FrameTarget::Action => {
                let position = self.position(&self.program, key);
                level.name = position.as_ref().map(|position| position.step.kind.to_owned());
                level.most_rounds = position.and_then(|position| Some(position.step.action.watched()?.max_rounds));
            }
        }
        Some(level)
    }

    /// The actions of the topic that it is in; `None` between topics.
    pub fn outline(&self) -> Option<TopicOutline> {
        let leaf = self.frames.leaf();
        let is_topic = |key: &&str| self.frames.get(key).is_some_and(|frame| frame.at == FrameTarget::Topic);
        let key = lineage(&leaf).find(is_topic)?;
        let steps = self.steps_of(&self.program, key)?;
        Some(TopicOutline {
            path: public_path(key),
            actions: steps.iter().map(|step| (step.id.clone(), step.kind)).collect(),
            next: self.frames.get(key)?.next,
        })
    }

    /// How many routes that may lead in a circle were followed since the newest answer, and how many may be.
    pub fn hops(&self) -> (u32, u32) {
        (self.head.hops, MOST_HOPS)
    }

    /// The newest of those routes, in words.
    pub fn way(&self) -> &[String] {
        &self.head.way
    }

    /// The triggers that fired, and how often.
    pub fn fired(&self) -> impl Iterator<Item = (&str, u64)> {
        self.head.fired.iter().map(|(trigger, fired)| (trigger.as_str(), fired.times))
    }

    /// Takes the sensitive values out of an event that is to be shown.
    pub fn mask(&self, event: &mut serde_json::Value) {
        mask(event, &self.masker);
    }
}

fn component_above(key: &str) -> &str {
    component(parent(key))
}

fn brought_by(insertion: &Insertion, above: &str) -> String {
    match insertion {
        Insertion::Called => format!("called by {above}"),
        Insertion::Routed { reason, then: Some(then), .. } => {
            format!("inserted for {} of {above}, then: {then}", reason.name())
        }
        Insertion::Routed { reason, then: None, .. } => format!("inserted for {} of {above}", reason.name()),
        Insertion::Triggered { trigger, ends, .. } => {
            let then = if *ends { "end" } else { "resume" };
            format!("inserted by the trigger {trigger}, then: {then}")
        }
    }
}
