//! The outline of a program for coverage: its parts by file, as a tree in the order of each file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::test_runner::coverage::item::{CoverageItem, ItemKey, change_reason};
use crate::test_runner::coverage::places::places;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::action::Branch;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, Skill, Topic};
use bcc_runtime::program::route_table::{ChangeTable, Route, RouteLevel, RouteTable};

#[derive(Clone, Debug)]
pub struct CoverageOutline {
    pub file: Arc<SourceFile>,
    pub id: String,
    pub name: Option<String>,
    pub items: Vec<CoverageItem>,
}

/// The files of a program, the script first. Each skill counts under the file that contains it.
pub(crate) fn outlines(program: &Program) -> Vec<CoverageOutline> {
    let written = Written::of(&program.file);
    let mut items = written.routes(RouteLevel::Session, &program.id, &program.routes);
    items.extend(written.changes(RouteLevel::Session, &program.id, &program.changes));
    items.extend(
        program
            .triggers
            .iter()
            .map(|trigger| written.item(ItemKey::Trigger(trigger.id.clone()), Some(trigger.route()), vec![])),
    );
    items.extend(program.skills.values().filter(|skill| skill.file.is_none()).map(|skill| written.skill(skill)));
    items.extend(program.phases.iter().map(|phase| written.phase(phase)));
    let script = CoverageOutline {
        file: Arc::clone(&program.file),
        id: program.id.clone(),
        name: program.name.clone(),
        items: in_order(items),
    };
    let others = program.skills.values().filter_map(|skill| {
        let file = skill.file.as_ref()?;
        let items = vec![Written::of(file).skill(skill)];
        Some(CoverageOutline { file: Arc::clone(file), id: skill.id.clone(), name: None, items })
    });
    std::iter::once(script).chain(others).collect()
}

/// A file with the positions of its parts.
struct Written<'f> {
    file: &'f SourceFile,
    places: BTreeMap<ItemKey, Span>,
}

impl<'f> Written<'f> {
    fn of(file: &'f Arc<SourceFile>) -> Self {
        Self { file, places: places(file) }
    }

    fn phase(&self, phase: &Phase) -> CoverageItem {
        let mut inside = self.routes(RouteLevel::Phase, &phase.id, &phase.routes);
        inside.extend(self.changes(RouteLevel::Phase, &phase.id, &phase.changes));
        inside.extend(phase.topics.iter().map(|topic| self.topic(topic)));
        self.item(ItemKey::Phase(phase.id.clone()), phase.name.clone(), inside)
    }

    fn topic(&self, topic: &Topic) -> CoverageItem {
        let mut inside = self.routes(RouteLevel::Topic, &topic.id, &topic.routes);
        inside.extend(self.changes(RouteLevel::Topic, &topic.id, &topic.changes));
        if let Some(each) = &topic.for_each {
            let description = format!("{} in {}", each.element, each.list.source());
            inside.push(self.item(ItemKey::ForEach(topic.id.clone()), Some(description), vec![]));
        }
        inside.extend(topic.steps.iter().chain(topic.finally.iter()).map(|step| self.step(step)));
        self.item(ItemKey::Topic(topic.id.clone()), topic.name.clone(), inside)
    }

    fn skill(&self, skill: &Skill) -> CoverageItem {
        let inside = skill.steps.iter().map(|step| self.step(step)).collect();
        self.item(ItemKey::Skill(skill.id.clone()), None, inside)
    }

    fn step(&self, step: &ProgramStep) -> CoverageItem {
        let mut inside = self.routes(RouteLevel::Action, &step.id, &step.routes);
        inside.extend(
            step.action.topic().into_iter().flat_map(|topic| self.routes(RouteLevel::Topic, &topic.id, &topic.routes)),
        );
        let branches = step.action.branches();
        inside.extend(branches.iter().map(|branch| self.branch(&step.id, branch)));
        // The actions inside an action that belong to none of its branches.
        let branched = |steps: &&bcc_runtime::program::program::ProgramSteps| {
            branches.iter().any(|branch| branch.steps.is_some_and(|of_branch| Arc::ptr_eq(of_branch, steps)))
        };
        let others = step.lists().into_iter().filter(|steps| !branched(steps));
        inside.extend(others.flat_map(|steps| steps.iter()).map(|step| self.step(step)));
        let item = self.item(ItemKey::Action(step.id.clone()), Some(step.kind.to_owned()), inside);
        CoverageItem { exits: step.exits, ..item }
    }

    fn branch(&self, action: &str, branch: &Branch<'_>) -> CoverageItem {
        let inside = branch.steps.into_iter().flat_map(|steps| steps.iter()).map(|step| self.step(step)).collect();
        let key = ItemKey::Branch(action.to_owned(), branch.name.clone());
        self.placed(key, branch.when.map(|when| format!("when: {when}")), branch.span, inside)
    }

    fn routes(&self, level: RouteLevel, id: &str, table: &RouteTable) -> Vec<CoverageItem> {
        let route = |(reason, route): (bcc_runtime::program::outcome::ExitReason, &Route)| {
            self.item(ItemKey::Route(level, id.to_owned(), reason.name().to_owned()), Some(route_text(route)), vec![])
        };
        table.iter().map(route).collect()
    }

    fn changes(&self, level: RouteLevel, id: &str, table: &ChangeTable) -> Vec<CoverageItem> {
        let change = |(name, route): (&str, &Route)| {
            self.item(ItemKey::Route(level, id.to_owned(), change_reason(name)), Some(route_text(route)), vec![])
        };
        table.iter().map(change).collect()
    }

    fn item(&self, key: ItemKey, description: Option<String>, children: Vec<CoverageItem>) -> CoverageItem {
        let span = self.places.get(&key).copied().unwrap_or_default();
        self.placed(key, description, span, children)
    }

    fn placed(
        &self,
        key: ItemKey,
        description: Option<String>,
        span: Span,
        children: Vec<CoverageItem>,
    ) -> CoverageItem {
        let line = self.file.line(span.start);
        // A span ends after its last byte, which may be the start of the next line.
        let last_line = self.file.line(span.end.saturating_sub(1).max(span.start));
        CoverageItem { key, description, line, last_line, exits: &[], children: in_order(children) }
    }
}

/// The effect of a route on one line, as an author would write it.
fn route_text(route: &Route) -> String {
    let set = (!route.set.is_empty()).then(|| "set: …".to_owned());
    let insert = route.insert.as_ref().map(|id| format!("insert: {id}"));
    let then = route
        .then
        .as_ref()
        .map(|target| if route.insert.is_some() { format!("then: {target}") } else { target.to_string() });
    set.into_iter().chain(insert).chain(then).collect::<Vec<_>>().join(", ")
}

fn in_order(mut items: Vec<CoverageItem>) -> Vec<CoverageItem> {
    items.sort_by_key(|item| item.line);
    items
}
