//! `insert-itself` and `skill-cycle`: what is inserted or called comes back to itself.

use std::collections::BTreeMap;

use crate::check::callables::{Callables, can_insert};
use crate::check::components::components;
use crate::check::facts::{Body, Facts};
use crate::check::library::SkillOutline;
use crate::check::rules::rule::Rule;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::{Diagnostic, Related};
use crate::source::span::Span;

/// The rule.
pub struct InsertItself;

impl Rule for InsertItself {
    fn slugs(&self) -> &'static [&'static str] {
        &["insert-itself", "skill-cycle"]
    }

    fn essential(&self) -> bool {
        true
    }

    fn check(&self, facts: &Facts<'_>, findings: &Findings) {
        if facts.seen.calls.is_empty() && facts.seen.routes.iter().all(|table| table.at.action.is_none()) {
            return;
        }
        let calls = Calls::of(facts);
        let number = components(calls.ways.len(), |node, nth| calls.ways.get(node)?.get(nth).map(|way| way.to));
        for (from, ways) in calls.ways.iter().enumerate() {
            for way in ways {
                if number.get(from) == number.get(way.to)
                    && let Some((place, by)) = &way.by
                    && by.is_here
                {
                    findings.report(calls.report(way, place, (facts, findings), &number));
                }
            }
        }
    }
}

/// How one calls another.
#[derive(Clone)]
struct By {
    /// Whether it stands in this document.
    is_here: bool,
    inserts: bool,
    id: String,
}

struct Way {
    to: usize,
    /// None where an action merely stands inside of what calls.
    by: Option<(Related, By)>,
}

/// Who calls whom: the actions of the document by their numbers, then its skills, then those of the project that are called.
struct Calls {
    ways: Vec<Vec<Way>>,
}

impl Calls {
    fn of(facts: &Facts<'_>) -> Self {
        let callables = Callables::of(facts);
        let (actions, skills) = (facts.seen.actions.len(), facts.skills.len());
        let mut calls = Self { ways: (0..actions + skills).map(|_| Vec::new()).collect() };
        let own: BTreeMap<&str, usize> = facts
            .skills
            .iter()
            .enumerate()
            .map(|(number, skill)| (skill.id.value.as_str(), actions + number))
            .collect();
        for (number, action) in facts.seen.actions.iter().enumerate() {
            let holder = match (action.parent, action.body) {
                (Some(parent), _) => parent,
                (None, Body::Skill(skill)) => actions + skill,
                (None, _) => continue,
            };
            calls.way(holder, Way { to: number, by: None });
        }
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        let mut open: Vec<&SkillOutline> = Vec::new();
        let inserts = facts.seen.routes.iter().flat_map(|table| {
            let inserts = table.on_exit.routes.iter().filter_map(|route| route.insert.as_ref());
            inserts.map(move |id| (id, table.at, true))
        });
        let uses = facts.seen.calls.iter().map(|call| (&call.skill, call.at, false));
        for (id, at, inserts) in inserts.chain(uses) {
            let Some(from) = at.action else { continue };
            let action = || {
                let number = callables.action(&id.value).filter(|_| inserts)?;
                facts.seen.actions.get(number).is_some_and(|action| can_insert(at.body, action)).then_some(number)
            };
            let to = own.get(id.value.as_str()).copied().or_else(|| {
                let skill = callables.skill(&id.value)?;
                Some(calls.other(skill, &mut others, &mut open))
            });
            let Some(to) = to.or_else(action) else { continue };
            let place = Related { message: calls_here(&id.value), file: facts.file.clone(), span: id.span };
            let by = By { is_here: true, inserts, id: id.value.clone() };
            calls.way(from, Way { to, by: Some((place, by)) });
        }
        while let Some(skill) = open.pop() {
            let Some(from) = others.get(&skill.id).copied() else { continue };
            for call in &skill.calls {
                let to = own.get(call.value.as_str()).filter(|_| facts.script.is_none()).copied().or_else(|| {
                    let other = facts.library.skill(&call.value)?;
                    Some(calls.other(other, &mut others, &mut open))
                });
                let related = Related { message: "which calls".to_owned(), file: skill.file.clone(), span: call.span };
                let by = By { is_here: false, inserts: false, id: call.value.clone() };
                if let Some(to) = to {
                    calls.way(from, Way { to, by: Some((related, by)) });
                }
            }
        }
        calls
    }

    /// The node of a skill of the project.
    fn other<'l>(
        &mut self,
        skill: &'l SkillOutline,
        others: &mut BTreeMap<String, usize>,
        open: &mut Vec<&'l SkillOutline>,
    ) -> usize {
        if let Some(number) = others.get(&skill.id) {
            return *number;
        }
        let number = self.ways.len();
        self.ways.push(Vec::new());
        others.insert(skill.id.clone(), number);
        open.push(skill);
        number
    }

    fn way(&mut self, from: usize, way: Way) {
        if let Some(ways) = self.ways.get_mut(from) {
            ways.push(way);
        }
    }

    fn report(
        &self,
        way: &Way,
        place: &Related,
        (facts, findings): (&Facts<'_>, &Findings),
        number: &[usize],
    ) -> Diagnostic {
        let by = way.by.as_ref().map(|(_, by)| by);
        let inserts = by.is_some_and(|by| by.inserts);
        let id = shortened(by.map_or("", |by| by.id.as_str()));
        let (slug, message) = if inserts {
            ("insert-itself", format!("this inserts `{id}` again from inside of `{id}`"))
        } else {
            ("skill-cycle", format!("this calls `{id}` again from inside of `{id}`"))
        };
        let help = "it would never end: insert something else here, or let it go on with `next`";
        let help = if inserts { help } else { "it would never end: call another skill, or take this call out" };
        let mut diagnostic = Diagnostic::error(slug, message, facts.file, place.span).with_help(help);
        if findings.may_advise() {
            diagnostic.related.extend(self.circle(way.to, number, place.span, facts));
        }
        diagnostic
    }

    /// The calls between what is called and the call itself, along one of the shortest ways.
    fn circle(&self, from: usize, number: &[usize], end: Span, facts: &Facts<'_>) -> Vec<Related> {
        const MOST: usize = 8;
        const MOST_NODES: usize = 1_000;
        let ends = |way: &Way| {
            way.by
                .as_ref()
                .is_some_and(|(place, by)| by.is_here && place.span == end && place.file.name() == facts.file.name())
        };
        let mut before: BTreeMap<usize, Option<(usize, usize)>> = BTreeMap::from([(from, None)]);
        let mut open = std::collections::VecDeque::from([from]);
        while let Some(node) = open.pop_front().filter(|_| before.len() < MOST_NODES) {
            for (nth, way) in self.ways.get(node).into_iter().flatten().enumerate() {
                if ends(way) {
                    return self.path(&before, node, MOST);
                }
                if number.get(way.to) == number.get(from) && !before.contains_key(&way.to) {
                    before.insert(way.to, Some((node, nth)));
                    open.push_back(way.to);
                }
            }
        }
        Vec::new()
    }

    fn path(&self, before: &BTreeMap<usize, Option<(usize, usize)>>, mut node: usize, most: usize) -> Vec<Related> {
        let mut path = Vec::new();
        while let Some(Some((from, nth))) = before.get(&node) {
            let way = self.ways.get(*from).and_then(|ways| ways.get(*nth));
            path.extend(way.and_then(|way| way.by.as_ref()).map(|(place, _)| place.clone()));
            node = *from;
        }
        path.reverse();
        path.truncate(most);
        path
    }
}

fn calls_here(id: &str) -> String {
    format!("on the way, `{}` is called here", shortened(id))
}
