//! Moving between frames: into the next phase, topic and action, and out of those that are done.

use serde_json::Value;

use crate::program::event::Event;
use crate::program::place::Place;
use crate::program::program::{Phase, Program, Step, Steps, Topic};
use crate::program::turn::base_names;
use crate::prompt::expr::parse::Expr;
use crate::run::draft::Draft;
use crate::run::frames::{At, Frame, ROOT, child, parent, public_path};
use crate::run::session::Session;
use crate::value::scopes::{Declarations, Layer, Scope, Stored};

/// Where a walk through the frames came to.
pub(crate) enum Arrived {
    /// At an action whose turn is next.
    Action,
    /// At the end of the script.
    End,
}

/// A walk that cannot go on: a condition that cannot be evaluated, or a frame that points at nothing.
pub(crate) struct Lost {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Lost {
    fn new(message: String) -> Self {
        Self { code: "frame-unreadable", message, help: None }
    }
}

impl Session {
    /// Walks from the innermost frame to the next action that is to run, entering and leaving what lies between.
    pub(crate) fn settle(&mut self, program: &Program, draft: &mut Draft) -> Result<Arrived, Lost> {
        // Every step enters or leaves a frame, and nothing is entered twice: the walk ends with the script.
        loop {
            let key = self.frames.leaf();
            let Some(frame) = self.frames.get(&key).cloned() else {
                return Err(Lost::new(format!("no frame `{key}`")));
            };
            match &frame.at {
                At::Session => match program.phases.get(frame.next) {
                    None => return Ok(Arrived::End),
                    Some(phase) => {
                        let place = Place { phase_id: Some(phase.id.clone()), ..Place::default() };
                        if self.skipped(
                            program,
                            (Some(phase), None),
                            phase.condition.as_ref(),
                            &phase.id,
                            &place,
                            draft,
                        )? {
                            self.next_child(ROOT);
                            continue;
                        }
                        let key = self.visit("phase", &phase.id, ROOT, draft);
                        let path = key.clone();
                        self.enter(key, At::Phase, Some((Scope::Phase, path, &phase.declarations)), draft)?;
                        draft.event(&place, Event::PhaseEntered { name: phase.name.clone() });
                    }
                },
                At::Phase => {
                    let phase = self.frames.get(ROOT).and_then(|root| program.phases.get(root.next));
                    let phase = phase.ok_or_else(|| Lost::new(format!("no phase for frame `{key}`")))?;
                    match phase.topics.get(frame.next) {
                        None => self.leave(&key, true),
                        Some(topic) => {
                            let mut place = Place {
                                phase_id: Some(phase.id.clone()),
                                topic_id: Some(topic.id.clone()),
                                path: topic.id.clone(),
                                ..Place::default()
                            };
                            if self.skipped(
                                program,
                                (Some(phase), Some(topic)),
                                topic.condition.as_ref(),
                                &topic.id,
                                &place,
                                draft,
                            )? {
                                self.next_child(&key);
                                continue;
                            }
                            let key = self.visit("topic", &topic.id, &key, draft);
                            place.path = public_path(&key);
                            let path = place.path.clone();
                            self.enter(key, At::Topic, Some((Scope::Topic, path, &topic.declarations)), draft)?;
                            draft.event(&place, Event::TopicEntered { name: topic.name.clone() });
                        }
                    }
                }
                At::Topic | At::Block(_) => {
                    let steps =
                        self.steps_of(program, &key).ok_or_else(|| Lost::new(format!("no steps for `{key}`")))?;
                    match steps.get(frame.next) {
                        Some(step) => {
                            if self.begin(program, step, &key, draft)? {
                                return Ok(Arrived::Action);
                            }
                        }
                        None if frame.at == At::Topic => self.leave(&key, true),
                        None => {
                            self.frames.remove(&key);
                            if let Some(action) = self.frames.change(parent(&key)) {
                                action.last = frame.last;
                            }
                            return Ok(Arrived::Action);
                        }
                    }
                }
                At::Action => return Ok(Arrived::Action),
            }
        }
    }

    /// Enters an action, unless its condition is false. Gives whether it was entered.
    fn begin(&mut self, program: &Program, step: &Step, container: &str, draft: &mut Draft) -> Result<bool, Lost> {
        let key = child(container, &step.id);
        let mut place = self.place_of(container);
        place.action_id = Some(step.id.clone());
        place.round = None;
        place.path = public_path(&key);
        let phase = self.frames.get(ROOT).and_then(|root| program.phases.get(root.next));
        let is_topic = |topic: &&Topic| Some(&topic.id) == place.topic_id.as_ref();
        let within = (phase, phase.and_then(|phase| phase.topics.iter().find(is_topic)));
        if self.skipped(program, within, step.condition.as_ref(), &step.id, &place, draft)? {
            self.next_child(container);
            return Ok(false);
        }
        self.enter(key, At::Action, None, draft)?;
        draft.event(&place, Event::ActionStarted { name: step.kind.to_owned() });
        Ok(true)
    }

    /// The steps that the frame `key`, a topic or a block, walks through.
    fn steps_of<'p>(&self, program: &'p Program, key: &str) -> Option<&'p Steps> {
        match &self.frames.get(key)?.at {
            At::Topic => {
                let phase = program.phases.get(self.frames.get(ROOT)?.next)?;
                phase.topics.get(self.frames.get(parent(key))?.next).map(|topic| &topic.steps)
            }
            At::Block(block) => self.position(program, parent(key))?.step.action.steps(block),
            _ => None,
        }
    }

    /// The frame of an action is done: its outcome goes up, and what holds it goes on to its next child.
    pub(crate) fn finish_action(&mut self, key: &str, outcome: &crate::program::outcome::Outcome) {
        self.frames.remove(key);
        let container = parent(key);
        if let Some(frame) = self.frames.change(container) {
            frame.next += 1;
            if matches!(frame.at, At::Block(_)) {
                frame.last = Some(Box::new(outcome.brief()));
            }
        }
    }

    fn leave(&mut self, key: &str, ends_scope: bool) {
        self.frames.remove(key);
        if ends_scope {
            self.scopes.pop();
        }
        self.next_child(parent(key));
    }

    fn next_child(&mut self, key: &str) {
        if let Some(frame) = self.frames.change(key) {
            frame.next += 1;
        }
    }

    fn enter(
        &mut self,
        key: String,
        at: At,
        scope: Option<(Scope, String, &std::sync::Arc<Declarations>)>,
        draft: &mut Draft,
    ) -> Result<(), Lost> {
        self.frames.put(key, Frame { at, ..Frame::default() });
        if let Some((scope, path, declarations)) = scope {
            let layer = self.fresh_layer(scope, path, declarations, draft)?;
            self.scopes.push(layer);
        }
        Ok(())
    }

    /// A layer that holds what its declarations begin with.
    pub(crate) fn fresh_layer(
        &mut self,
        scope: Scope,
        path: String,
        declarations: &std::sync::Arc<Declarations>,
        draft: &mut Draft,
    ) -> Result<Layer, Lost> {
        let mut layer = Layer::new(scope, path, std::sync::Arc::clone(declarations));
        let at = self.services.clock.at(self.last_seq + 1);
        for declaration in declarations.values().filter(|declaration| !declaration.value.is_null()) {
            let stored =
                Stored { value: declaration.value.clone(), source: "declare".into(), round: None, at: at.clone() };
            draft
                .variable(scope, &layer.path, &declaration.name, &stored, declaration.sensitive)
                .map_err(|error| Lost::new(error.to_string()))?;
            if declaration.sensitive {
                self.hide(&declaration.value, draft).map_err(|error| Lost::new(error.to_string()))?;
            }
            layer.put(declaration.name.clone(), stored);
        }
        Ok(layer)
    }

    /// Whether a condition keeps the session from entering something; tells of it when it does.
    fn skipped(
        &mut self,
        program: &Program,
        within: (Option<&Phase>, Option<&Topic>),
        condition: Option<&Expr>,
        name: &str,
        place: &Place,
        draft: &mut Draft,
    ) -> Result<bool, Lost> {
        let Some(condition) = condition else { return Ok(false) };
        let mut names = base_names(program, within.0, within.1, &self.recent, self.scopes.clone());
        names.give_text("time", self.services.clock.words(self.last_seq));
        names.give("current_round", Value::from(1));
        names.give("max_rounds", Value::from(1));
        match condition.truth(&names) {
            Ok(true) => Ok(false),
            Ok(false) => {
                let why = format!("its condition does not hold: {}", condition.source());
                draft.event(place, Event::Skipped { name: name.to_owned(), why });
                Ok(true)
            }
            Err(error) => Err(Lost {
                code: "expression-failed",
                message: format!(
                    "the condition of `{name}`, `{}`, cannot be evaluated: {}",
                    condition.source(),
                    error.message
                ),
                help: error.help,
            }),
        }
    }

    /// The key of the next visit of a phase or topic: `id`, then `id#2`, …
    fn visit(&mut self, what: &str, id: &str, above: &str, draft: &mut Draft) -> String {
        let name = format!("visit:{what}:{id}");
        let count = self.counters.entry(name.clone()).or_insert(0);
        *count += 1;
        draft.counters.push((name, *count));
        if *count == 1 { child(above, id) } else { child(above, &format!("{id}#{count}")) }
    }
}
