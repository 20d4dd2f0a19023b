//! `insert-itself` and `skill-cycle`: what is inserted or called comes back to itself.
//!
//! An insertion happens at an exit reason. A circle of several reasons needs something else to happen each time, so somebody
//! may leave it; one in which the same reason leads back to where it began repeats itself, and is reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::check::callables::can_insert;
use crate::check::components::components;
use crate::check::facts::{ActionFact, Body, Facts};
use crate::check::library::SkillOutline;
use crate::check::reasons::{REASONS, Table, possible};
use crate::check::rules::rule::Rule;
use crate::script::fields::shortened;
use crate::script::findings::Findings;
use crate::source::diagnostic::{Diagnostic, Related};
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;

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
        let mut routes = facts.seen.routes.iter().flat_map(|table| &table.on_exit.routes);
        if facts.seen.calls.is_empty() && routes.all(|route| route.insert.is_none()) {
            return;
        }
        let calls = Calls::of(facts);
        let mut told: BTreeSet<Span> = BTreeSet::new();
        for reason in calls.reasons() {
            let circles = calls.circles(reason);
            for (from, ways) in circles.ways.iter().enumerate() {
                for way in ways.iter().filter(|way| circles.part.get(from) == circles.part.get(way.to)) {
                    if let Some(by) = way.by.filter(|by| by.is_here && told.insert(by.id.span)) {
                        findings.report(circles.report(from, way.to, by, facts, findings.may_advise()));
                    }
                }
            }
        }
    }
}

/// By what one calls another.
#[derive(Clone, Copy)]
struct By<'f> {
    id: &'f Spanned<String>,
    file: &'f Arc<SourceFile>,
    /// Whether it stands in this document.
    is_here: bool,
    inserts: bool,
    /// Whether the route stands in a table around the action.
    inherited: bool,
}

#[derive(Clone, Copy)]
struct Way<'f> {
    to: usize,
    /// The exit reason of an insertion.
    reason: Option<&'static str>,
    /// None where an action merely stands inside of what calls.
    by: Option<By<'f>>,
}

/// Who calls whom: the actions of the document by their numbers, then its skills, then those of the project that are called.
struct Calls<'f, 'a> {
    facts: &'f Facts<'a>,
    ways: Vec<Vec<Way<'f>>>,
    /// The skills of the document by their ids.
    own: BTreeMap<&'f str, usize>,
    /// The same of those of the project that were met so far.
    others: BTreeMap<&'f str, usize>,
    /// Those of them whose calls were not yet followed.
    open: Vec<&'f SkillOutline>,
}

impl<'f, 'a> Calls<'f, 'a> {
    fn of(facts: &'f Facts<'a>) -> Self {
        let (actions, skills) = (facts.seen.actions.len(), facts.skills.len());
        let own = facts.skills.iter().enumerate().map(|(number, skill)| (skill.id.value.as_str(), actions + number));
        let ways = (0..actions + skills).map(|_| Vec::new()).collect();
        let mut calls = Self { facts, ways, own: own.collect(), others: BTreeMap::new(), open: Vec::new() };
        for (number, action) in facts.seen.actions.iter().enumerate() {
            let holder = match (action.parent, action.body) {
                (Some(parent), _) => Some(parent),
                (None, Body::Skill(skill)) => Some(actions + skill),
                (None, _) => None,
            };
            if let Some(holder) = holder {
                calls.way(holder, Way { to: number, reason: None, by: None });
            }
        }
        for call in &facts.seen.calls {
            let by = By { id: &call.skill, file: facts.file, is_here: true, inserts: false, inherited: false };
            if let (Some(from), Some(to)) = (call.at.action, calls.skill(&call.skill.value)) {
                calls.way(from, Way { to, reason: None, by: Some(by) });
            }
        }
        calls.insertions();
        calls.others();
        calls
    }

    /// What each action inserts, by the route that counts for it: its own, else that of the nearest table around it.
    fn insertions(&mut self) {
        let facts = self.facts;
        let mut tables: BTreeMap<Body, Table<'f>> = BTreeMap::new();
        for table in facts.seen.routes.iter().filter(|table| table.at.action.is_none()) {
            tables.insert(table.at.body, Table::of(Some(&table.on_exit)));
        }
        for (number, action) in facts.seen.actions.iter().enumerate() {
            let own = Table::of(action.on_exit.as_ref());
            // What kind of action it is decides which reasons it gives; around a skill stands nothing that counts in it.
            let around = [Some(action.body), action.body.phase().map(Body::Phase), Some(Body::Session)];
            let around = around.map(|body| body.filter(|_| action.sound && !matches!(action.body, Body::Skill(_))));
            for reason in possible(facts, action) {
                let outer = || around.iter().flatten().find_map(|body| tables.get(body)?.route(reason));
                let mine = own.route(reason);
                let Some(id) = mine.or_else(outer).and_then(|route| route.insert.as_ref()) else { continue };
                let Some(to) = self.inserted(id, action) else { continue };
                let by = By { id, file: facts.file, is_here: true, inserts: true, inherited: mine.is_none() };
                self.way(number, Way { to, reason: Some(reason), by: Some(by) });
            }
        }
    }

    /// The calls of the project's skills, and of those that they call.
    fn others(&mut self) {
        while let Some(skill) = self.open.pop() {
            let Some(from) = self.others.get(skill.id.as_str()).copied() else { continue };
            for call in &skill.calls {
                let id = call.id.value.as_str();
                // A skill of the script is not known to others; that of a file is the one that the project has.
                let own = self.own.get(id).filter(|_| self.facts.script.is_none()).copied();
                let to = own.or_else(|| Some(self.other(self.facts.library.skill(id)?)));
                let reason = call.reason.as_ref().map(|reason| REASONS.into_iter().find(|known| known == reason));
                // What happens at a reason that does not exist never happens.
                if let (Some(to), None | Some(Some(_))) = (to, reason) {
                    let by = By { id: &call.id, file: &skill.file, is_here: false, inserts: false, inherited: false };
                    self.way(from, Way { to, reason: reason.flatten(), by: Some(by) });
                }
            }
        }
    }

    fn inserted(&mut self, id: &Spanned<String>, from: &ActionFact) -> Option<usize> {
        self.skill(&id.value).or_else(|| {
            let number = self.facts.callables().action(&id.value)?;
            self.facts.seen.actions.get(number).is_some_and(|action| can_insert(from.body, action)).then_some(number)
        })
    }

    /// The node of a skill.
    fn skill(&mut self, id: &str) -> Option<usize> {
        match self.own.get(id) {
            Some(own) => Some(*own),
            None => Some(self.other(self.facts.callables().skill(id)?)),
        }
    }

    /// The node of a skill of the project.
    fn other(&mut self, skill: &'f SkillOutline) -> usize {
        if let Some(number) = self.others.get(skill.id.as_str()) {
            return *number;
        }
        let number = self.ways.len();
        self.ways.push(Vec::new());
        self.others.insert(&skill.id, number);
        self.open.push(skill);
        number
    }

    fn way(&mut self, from: usize, way: Way<'f>) {
        if let Some(ways) = self.ways.get_mut(from) {
            ways.push(way);
        }
    }

    /// The reasons at which something is inserted; none, where nothing is, for the calls alone.
    fn reasons(&self) -> Vec<Option<&'static str>> {
        let used: BTreeSet<&str> = self.ways.iter().flatten().filter_map(|way| way.reason).collect();
        if used.is_empty() {
            return vec![None];
        }
        REASONS.into_iter().filter(|reason| used.contains(reason)).map(Some).collect()
    }

    /// What is called at any time, or inserted at this reason.
    fn circles(&self, reason: Option<&'static str>) -> Circles<'f> {
        let counts = |way: &&Way<'f>| way.reason.is_none() || way.reason == reason;
        let ways: Vec<Vec<Way<'f>>> =
            self.ways.iter().map(|ways| ways.iter().filter(counts).copied().collect()).collect();
        let part = components(ways.len(), |node, nth| ways.get(node)?.get(nth).map(|way| way.to));
        Circles { reason, ways, part }
    }
}

/// The ways of one reason.
struct Circles<'f> {
    reason: Option<&'static str>,
    ways: Vec<Vec<Way<'f>>>,
    /// Of each node the part: those of one part lead to each other.
    part: Vec<usize>,
}

impl Circles<'_> {
    fn report(&self, from: usize, to: usize, by: By<'_>, facts: &Facts<'_>, advise: bool) -> Diagnostic {
        let id = shortened(&by.id.value);
        let diagnostic = if by.inserts {
            let message = format!("this inserts `{id}` again from inside of `{id}`");
            let help = match (facts.seen.actions.get(from).filter(|_| by.inherited), self.reason) {
                (Some(action), Some(reason)) => format!(
                    "it would never end: this route counts for `{}` too, which has none of its own for `{reason}`; give it \
                     one, as `{reason}: next`",
                    shortened(&action.id.value)
                ),
                _ => "it would never end: insert something else here, or let it go on with `next`".to_owned(),
            };
            Diagnostic::error("insert-itself", message, facts.file, by.id.span).with_help(help)
        } else {
            let message = format!("this calls `{id}` again from inside of `{id}`");
            let help = "it would never end: call another skill, or take this call out";
            Diagnostic::error("skill-cycle", message, facts.file, by.id.span).with_help(help)
        };
        let related = if advise { self.circle(to, by.id.span) } else { Vec::new() };
        related.into_iter().fold(diagnostic, |diagnostic, related| {
            diagnostic.with_related(related.message, &related.file, related.span)
        })
    }

    /// The calls between what is called and the call itself, along one of the shortest ways.
    fn circle(&self, from: usize, end: Span) -> Vec<Related> {
        const MOST_NODES: usize = 1_000;
        let ends = |way: &Way<'_>| way.by.is_some_and(|by| by.is_here && by.id.span == end);
        let mut before: BTreeMap<usize, Option<(usize, usize)>> = BTreeMap::from([(from, None)]);
        let mut open = VecDeque::from([from]);
        while let Some(node) = open.pop_front().filter(|_| before.len() < MOST_NODES) {
            for (nth, way) in self.ways.get(node).into_iter().flatten().enumerate() {
                if ends(way) {
                    return self.path(&before, node);
                }
                if self.part.get(way.to) == self.part.get(from) && !before.contains_key(&way.to) {
                    before.insert(way.to, Some((node, nth)));
                    open.push_back(way.to);
                }
            }
        }
        Vec::new()
    }

    fn path(&self, before: &BTreeMap<usize, Option<(usize, usize)>>, mut node: usize) -> Vec<Related> {
        const MOST: usize = 8;
        let mut path = Vec::new();
        while let Some(Some((from, nth))) = before.get(&node) {
            let by = self.ways.get(*from).and_then(|ways| ways.get(*nth)).and_then(|way| way.by);
            path.extend(by.map(|by| Related {
                message: match by.is_here {
                    true => format!("on the way, `{}` is called here", shortened(&by.id.value)),
                    false => "which calls".to_owned(),
                },
                file: Arc::clone(by.file),
                span: by.id.span,
            }));
            node = *from;
        }
        path.reverse();
        path.truncate(MOST);
        path
    }
}
