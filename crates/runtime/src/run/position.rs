//! Resolves the frames of a session to parts of the program.

use crate::program::location::EventLocation;
use crate::program::outcome::ExitReason;
use crate::program::program::{Phase, Program, ProgramStep, Skill, Topic};
use crate::program::route_table::{Route, RouteLevel, RouteTable};
use crate::run::frames::{Frame, FrameTarget, Frames, ROOT, component, id_of, lineage, public_path};
use crate::run::session::Session;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The parts of the program that a frame points at.
pub(crate) struct Position<'p> {
    /// The phase; the last one if the script has ended and something is inserted after it.
    pub(crate) phase: &'p Phase,
    /// The topic, likewise.
    pub(crate) topic: &'p Topic,
    pub(crate) step: &'p ProgramStep,
    /// Whether it was inserted, or belongs to a skill, a branch, a `finally` or a `compensate`: then only its own table applies.
    pub(crate) inserted: bool,
    /// Whether `topic` is a topic of the skill that contains it, whose table applies as well.
    pub(crate) in_skill_topic: bool,
    /// The key of the frame that stores its monitor data and advice: of its skill, else of its topic.
    pub(crate) visit_key: String,
}

/// A route and its table.
pub(crate) struct FoundRoute<'p> {
    pub(crate) route: &'p Route,
    /// The level of its table.
    pub(crate) level: RouteLevel,
    /// The id of the owner of the table.
    pub(crate) id: &'p str,
}

impl FoundRoute<'_> {
    /// The table as text.
    pub(crate) fn table(&self) -> Message {
        msg!("on_exit of the {} `{}`", Message::word(self.level.name()), self.id)
    }
}

impl<'p> Position<'p> {
    /// The route for `reason`: searched in the action's own table, then the topic's, the phase's, the session's (docs/routes.md).
    /// Inserted actions use only their own table, because the author of the topic's table did not write them; those in a topic of a skill
    /// also use the table of that topic.
    pub(crate) fn route(&self, program: &'p Program, reason: ExitReason) -> Option<FoundRoute<'p>> {
        let own = (&self.step.routes, RouteLevel::Action, self.step.id.as_str());
        let wider: [(&'p RouteTable, RouteLevel, &'p str); 3] = [
            (&self.topic.routes, RouteLevel::Topic, &self.topic.id),
            (&self.phase.routes, RouteLevel::Phase, &self.phase.id),
            (&program.routes, RouteLevel::Session, &program.id),
        ];
        let applies = |level: &RouteLevel| !self.inserted || self.in_skill_topic && *level == RouteLevel::Topic;
        let tables = std::iter::once(own).chain(wider.into_iter().filter(|(_, level, _)| applies(level)));
        tables.into_iter().find_map(|(table, level, id)| {
            let route = table.get(reason)?;
            Some(FoundRoute { route, level, id })
        })
    }

    /// The reasons for which a route leads away from an unfinished action, or may do so through what it sets.
    pub(crate) fn reasons_with_route(&self, program: &'p Program) -> Vec<ExitReason> {
        let tables = [&self.topic.changes, &self.phase.changes, &program.changes];
        let change = |name: &str| tables.into_iter().find_map(|table| table.get(name));
        let may_lead_away = |route: &Route| {
            route.leads_away() || route.set.iter().any(|set| change(&set.name).is_some_and(Route::leads_away))
        };
        [ExitReason::UserBlocked, ExitReason::OffTopic]
            .into_iter()
            .filter(|reason| self.route(program, *reason).is_some_and(|found| may_lead_away(found.route)))
            .collect()
    }
}

/// An action to insert by its id: inside a skill one of its own, else one of the script.
pub(crate) fn single<'p>(program: &'p Program, skill: Option<&'p Skill>, id: &str) -> Option<&'p ProgramStep> {
    match skill {
        Some(skill) => skill.inserts.get(id),
        None => program.inserts.get(id),
    }
}

/// The last action of the script, as the position of insertions after it.
pub(crate) fn last_of(program: &Program) -> Option<Position<'_>> {
    let phase = program.phases.last()?;
    let topic = phase.topics.last()?;
    let step = topic.steps.last()?;
    Some(Position { phase, topic, step, inserted: false, in_skill_topic: false, visit_key: String::new() })
}

impl Frames {
    /// The position of the frame `key`, an action.
    pub(crate) fn position<'p>(&self, program: &'p Program, key: &str) -> Option<Position<'p>> {
        let mut above: &Frame = self.get(ROOT)?;
        let phase = program.phases.get(above.next).or(program.phases.last())?;
        let mut topic: Option<&'p Topic> = None;
        let mut steps: Option<&'p [ProgramStep]> = None;
        let mut step: Option<&'p ProgramStep> = None;
        let mut skill: Option<&'p Skill> = None;
        let mut inserted = false;
        let mut in_skill_topic = false;
        let mut visit_key = String::new();
        for key in lineage(key) {
            let frame = self.get(key)?;
            match &frame.at {
                FrameTarget::Session | FrameTarget::Phase => {}
                FrameTarget::Topic => {
                    topic = phase.topics.get(above.next);
                    steps = topic.map(|topic| topic.steps.as_slice());
                    key.clone_into(&mut visit_key);
                }
                FrameTarget::Block(block) => {
                    inserted |= frame.branch.is_some();
                    steps = step.and_then(|step| step.action.steps(block)).map(|steps| steps.as_slice());
                    if let Some(own) = step.and_then(|step| step.action.topic()) {
                        topic = Some(own);
                        in_skill_topic = true;
                        key.clone_into(&mut visit_key);
                    }
                }
                FrameTarget::Skill(id) => {
                    inserted = true;
                    in_skill_topic = false;
                    skill = program.skills.get(id);
                    steps = skill.map(|skill| skill.steps.as_slice());
                    key.clone_into(&mut visit_key);
                }
                FrameTarget::Single(id) => {
                    inserted = true;
                    in_skill_topic = false;
                    steps = single(program, skill.filter(|_| !frame.triggered()), id).map(std::slice::from_ref);
                }
                FrameTarget::Action => step = steps.and_then(|steps| steps.get(above.next)),
                FrameTarget::Finally => {
                    inserted = true;
                    steps = topic.map(|topic| topic.finally.as_slice());
                }
                FrameTarget::Compensation => {
                    inserted = true;
                    in_skill_topic = false;
                    steps = step.map(|step| step.compensate.as_slice());
                }
            }
            above = frame;
        }
        let topic = topic.or(phase.topics.last())?;
        Some(Position { phase, topic, step: step?, inserted, in_skill_topic, visit_key })
    }
}

impl Session {
    pub(crate) fn place_of(&self, key: &str) -> EventLocation {
        let mut place = EventLocation { path: public_path(key), ..EventLocation::default() };
        for key in lineage(key) {
            let Some(frame) = self.frames.get(key) else { break };
            let id = id_of(component(key));
            match &frame.at {
                FrameTarget::Phase => place.phase_id = Some(id.to_owned()),
                FrameTarget::Topic => place.topic_id = Some(id.to_owned()),
                FrameTarget::Action => {
                    place.action_id = Some(id.to_owned());
                    place.round = frame.round;
                }
                FrameTarget::Session
                | FrameTarget::Block(_)
                | FrameTarget::Skill(_)
                | FrameTarget::Single(_)
                | FrameTarget::Finally
                | FrameTarget::Compensation => {}
            }
        }
        place
    }

    /// The position of the frame `key`, an action.
    pub(crate) fn position<'p>(&self, program: &'p Program, key: &str) -> Option<Position<'p>> {
        self.frames.position(program, key)
    }

    /// The skill that contains the frame `key`.
    pub(crate) fn skill_of<'p>(&self, program: &'p Program, key: &str) -> Option<&'p Skill> {
        let skills = lineage(key).filter_map(|key| match &self.frames.get(key)?.at {
            FrameTarget::Skill(id) => program.skills.get(id),
            _ => None,
        });
        skills.last()
    }

    /// The steps of the frame `key`, which is not an action.
    pub(crate) fn steps_of<'p>(&self, program: &'p Program, key: &str) -> Option<&'p [ProgramStep]> {
        let frame = self.frames.get(key)?;
        match &frame.at {
            FrameTarget::Topic => self.topic_of_frame(program, key).map(|topic| topic.steps.as_slice()),
            FrameTarget::Finally => {
                let topic = self.topic_of_frame(program, crate::run::frames::parent(key));
                topic.map(|topic| topic.finally.as_slice())
            }
            FrameTarget::Compensation => {
                let position = self.position(program, crate::run::frames::parent(key))?;
                Some(position.step.compensate.as_slice())
            }
            FrameTarget::Block(block) => {
                let position = self.position(program, crate::run::frames::parent(key))?;
                position.step.action.steps(block).map(|steps| steps.as_slice())
            }
            FrameTarget::Skill(id) => program.skills.get(id).map(|skill| skill.steps.as_slice()),
            FrameTarget::Single(id) => {
                let skill = self.skill_of(program, key).filter(|_| !frame.triggered());
                single(program, skill, id).map(std::slice::from_ref)
            }
            FrameTarget::Session | FrameTarget::Phase | FrameTarget::Action => None,
        }
    }
}
