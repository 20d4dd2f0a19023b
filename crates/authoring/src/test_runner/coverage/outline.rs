//! What there is to cover: the parts of a program, file by file, as a tree in the order of each file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::test_runner::coverage::item::{Item, Key};
use crate::test_runner::coverage::places::places;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::action::Branch;
use bcc_runtime::program::program::{Phase, Program, Skill, Step, Topic};
use bcc_runtime::program::routes::{Level, Route, RouteTable};

#[derive(Clone, Debug)]
pub struct Outline {
    pub file: Arc<SourceFile>,
    pub id: String,
    pub name: Option<String>,
    pub items: Vec<Item>,
}

/// The files of a program, its script first: each skill counts under the file that holds it.
pub fn outlines(program: &Program) -> Vec<Outline> {
    let written = Written::of(&program.file);
    let mut items = written.routes(Level::Session, &program.id, &program.routes);
    items.extend(program.triggers.iter().map(|trigger| {
        let then = if trigger.ends { "end" } else { "resume" };
        written.item(
            Key::Trigger(trigger.id.clone()),
            Some(format!("insert: {}, then: {then}", trigger.insert)),
            vec![],
        )
    }));
    items.extend(program.skills.values().filter(|skill| skill.file.is_none()).map(|skill| written.skill(skill)));
    items.extend(program.phases.iter().map(|phase| written.phase(phase)));
    let script = Outline {
        file: Arc::clone(&program.file),
        id: program.id.clone(),
        name: program.name.clone(),
        items: in_order(items),
    };
    let others = program.skills.values().filter_map(|skill| {
        let file = skill.file.as_ref()?;
        let items = vec![Written::of(file).skill(skill)];
        Some(Outline { file: Arc::clone(file), id: skill.id.clone(), name: None, items })
    });
    std::iter::once(script).chain(others).collect()
}

/// A file with the places of what is written in it.
struct Written<'f> {
    file: &'f SourceFile,
    places: BTreeMap<Key, Span>,
}

impl<'f> Written<'f> {
    fn of(file: &'f Arc<SourceFile>) -> Self {
        Self { file, places: places(file) }
    }

    fn phase(&self, phase: &Phase) -> Item {
        let mut inside = self.routes(Level::Phase, &phase.id, &phase.routes);
        inside.extend(phase.topics.iter().map(|topic| self.topic(topic)));
        self.item(Key::Phase(phase.id.clone()), phase.name.clone(), inside)
    }

    fn topic(&self, topic: &Topic) -> Item {
        let mut inside = self.routes(Level::Topic, &topic.id, &topic.routes);
        if let Some(each) = &topic.for_each {
            let about = format!("{} in {}", each.element, each.list.source());
            inside.push(self.item(Key::ForEach(topic.id.clone()), Some(about), vec![]));
        }
        inside.extend(topic.steps.iter().map(|step| self.step(step)));
        self.item(Key::Topic(topic.id.clone()), topic.name.clone(), inside)
    }

    fn skill(&self, skill: &Skill) -> Item {
        let inside = skill.steps.iter().map(|step| self.step(step)).collect();
        self.item(Key::Skill(skill.id.clone()), None, inside)
    }

    fn step(&self, step: &Step) -> Item {
        let mut inside = self.routes(Level::Action, &step.id, &step.routes);
        let branches = step.action.branches();
        inside.extend(branches.iter().map(|branch| self.branch(&step.id, branch)));
        // What stands in an action and in none of its branches.
        let branched = |steps: &&bcc_runtime::program::program::Steps| {
            branches.iter().any(|branch| branch.steps.is_some_and(|of_branch| Arc::ptr_eq(of_branch, steps)))
        };
        let others = step.action.blocks().into_iter().filter(|steps| !branched(steps));
        inside.extend(others.flat_map(|steps| steps.iter()).map(|step| self.step(step)));
        let item = self.item(Key::Action(step.id.clone()), Some(step.kind.to_owned()), inside);
        Item { exits: step.exits, ..item }
    }

    fn branch(&self, action: &str, branch: &Branch<'_>) -> Item {
        let inside = branch.steps.into_iter().flat_map(|steps| steps.iter()).map(|step| self.step(step)).collect();
        let key = Key::Branch(action.to_owned(), branch.name.clone());
        self.placed(key, branch.when.map(|when| format!("when: {when}")), branch.span, inside)
    }

    fn routes(&self, level: Level, id: &str, table: &RouteTable) -> Vec<Item> {
        let route = |(reason, route): (bcc_runtime::program::outcome::ExitReason, &Route)| {
            self.item(Key::Route(level, id.to_owned(), reason.name()), Some(told(route)), vec![])
        };
        table.iter().map(route).collect()
    }

    fn item(&self, key: Key, about: Option<String>, children: Vec<Item>) -> Item {
        let span = self.places.get(&key).copied().unwrap_or_default();
        self.placed(key, about, span, children)
    }

    fn placed(&self, key: Key, about: Option<String>, span: Span, children: Vec<Item>) -> Item {
        let line = self.file.line(span.start);
        // A span ends behind its last byte, which may be the first of the next line.
        let last_line = self.file.line(span.end.saturating_sub(1).max(span.start));
        Item { key, about, line, last_line, exits: &[], children: in_order(children) }
    }
}

/// Where a route leads, as an author would write it in one line.
fn told(route: &Route) -> String {
    let set = (!route.set.is_empty()).then(|| "set: …".to_owned());
    let insert = route.insert.as_ref().map(|id| format!("insert: {id}"));
    let then =
        route.then.as_ref().map(|go| if route.insert.is_some() { format!("then: {go}") } else { go.to_string() });
    set.into_iter().chain(insert).chain(then).collect::<Vec<_>>().join(", ")
}

fn in_order(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by_key(|item| item.line);
    items
}
