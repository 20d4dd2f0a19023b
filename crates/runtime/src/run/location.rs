//! The position of a session for display: every level from the phase to the action, and its surroundings.

use crate::program::event_masking::mask;
use crate::run::frames::{Frame, FrameTarget, component, id_of, lineage, parent, public_path};
use crate::run::insertion::Insertion;
use crate::run::routing::MAX_HOPS;
use crate::run::session::Session;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    Phase,
    /// A topic, or its run for one element.
    Topic,
    /// A list of actions inside an action.
    Block,
    Skill,
    /// One inserted action of the script.
    Single,
    Action,
}

/// One level of a session's position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationLevel {
    pub kind: LocationKind,
    pub id: String,
    /// The name of a phase or topic, or the kind of an action.
    pub name: Option<String>,
    /// The number of this visit, from 1.
    pub visit: u64,
    /// The name in paths of the element that the topic runs for.
    pub element: Option<String>,
    /// The number of that element, from 1.
    pub number: u32,
    /// The round of an action, if it counts rounds.
    pub round: Option<u32>,
    /// Its last round, if known.
    pub max_rounds: Option<u32>,
    /// How often a route restarted the action.
    pub retries: u32,
    /// How it was inserted, and what follows it.
    pub inserted_by: Option<Message>,
    /// Whether an answer is held back for the action until an insertion ends.
    pub holds_answer: bool,
    /// Whether a monitor's advice is stored for its next turn.
    pub advised: bool,
}

/// The current actions of the topic that a session is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicOutline {
    pub path: String,
    /// The id and the kind of each action.
    pub actions: Vec<(String, &'static str)>,
    /// The index of the next or running one.
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
            kind: LocationKind::Action,
            name: None,
            visit: visit.parse().unwrap_or(1),
            element: named.split_once('@').map(|(_, element)| element.to_owned()),
            number: self.frames.get(parent(key)).map_or(0, |above| above.taken),
            round: frame.round,
            max_rounds: None,
            retries: frame.retries,
            inserted_by: frame.insertion.as_ref().map(|insertion| brought_by(insertion, id_of(component_above(key)))),
            holds_answer: frame.held.is_some(),
            advised: frame.advice.is_some(),
            id,
        };
        let phases = &self.program.phases;
        match &frame.at {
            FrameTarget::Session => return None,
            FrameTarget::Phase => {
                level.kind = LocationKind::Phase;
                level.name = phases.iter().find(|phase| phase.id == level.id).and_then(|phase| phase.name.clone());
            }
            FrameTarget::Topic => {
                level.kind = LocationKind::Topic;
                let mut topics = phases.iter().flat_map(|phase| &phase.topics);
                level.name = topics.find(|topic| topic.id == level.id).and_then(|topic| topic.name.clone());
            }
            FrameTarget::Block(block) => {
                level.kind = LocationKind::Block;
                level.id.clone_from(block);
            }
            FrameTarget::Finally | FrameTarget::Compensation => {
                level.kind = LocationKind::Block;
                component.trim_start_matches('=').clone_into(&mut level.id);
            }
            FrameTarget::Skill(_) => level.kind = LocationKind::Skill,
            FrameTarget::Single(_) => level.kind = LocationKind::Single,
            FrameTarget::Action => {
                let position = self.position(&self.program, key);
                level.name = position.as_ref().map(|position| position.step.kind.to_owned());
                level.max_rounds = position.and_then(|position| Some(position.step.action.watched()?.max_rounds));
            }
        }
        Some(level)
    }

    /// The actions of the current topic; `None` between topics.
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

    /// The number of possibly circular routes since the newest answer, and its limit.
    pub fn route_hops(&self) -> (u32, u32) {
        (self.head.route_hops, MAX_HOPS)
    }

    /// Descriptions of the newest of those routes.
    pub fn recent_routes(&self) -> &[String] {
        &self.head.recent_routes
    }

    /// The triggers that fired, and how often.
    pub fn fired(&self) -> impl Iterator<Item = (&str, u64)> {
        self.head.fired.iter().map(|(trigger, fired)| (trigger.as_str(), fired.times))
    }

    /// Masks sensitive values in an event for display.
    pub fn mask(&self, event: &mut serde_json::Value) {
        mask(event, &self.masker);
    }
}

fn component_above(key: &str) -> &str {
    component(parent(key))
}

fn brought_by(insertion: &Insertion, above: &str) -> Message {
    match insertion {
        Insertion::Called => msg!("called by {above}"),
        Insertion::ByRoute { reason, then: Some(then), .. } => {
            msg!("inserted for {} of {above}, then: {then}", reason.name())
        }
        Insertion::ByRoute { reason, then: None, .. } => msg!("inserted for {} of {above}", reason.name()),
        Insertion::Triggered { trigger, ends, goto, .. } => {
            let then = Insertion::trigger_target(*ends, goto.clone());
            msg!("inserted by the trigger {trigger}, then: {then}")
        }
    }
}
