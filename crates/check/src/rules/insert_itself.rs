//! `insert-itself` and `skill-cycle`: what is inserted or called comes back to itself.
//!
//! An insertion happens at an exit reason. A circle of several reasons needs something else to happen each time, so somebody
//! may leave it; one in which the same reason leads back to where it began repeats itself, and is reported. A call that stands
//! in a case or under a condition comes to an end; where it does not, the session ends with an error (docs/actions/).

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::calls::{CallEdge, CallKind, Calls};
use crate::components::components;
use crate::reasons::REASONS;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::{Diagnostic, Related};
use bcc_lang::source::span::Span;

pub static RULE: Rule = Rule { slugs: &["insert-itself", "skill-cycle"], essential: true, check };

fn check(facts: &SemanticModel<'_>, findings: &Findings) {
    let mut routes = facts.seen.routes.iter().flat_map(|table| &table.on_exit.routes);
    if facts.seen.calls.is_empty() && routes.all(|route| route.insert.is_none()) {
        return;
    }
    let calls = Calls::of(facts);
    let mut told: BTreeSet<Span> = BTreeSet::new();
    for reason in reasons(&calls) {
        let circles = circles(&calls, reason);
        for (from, ways) in circles.ways.iter().enumerate() {
            for way in ways.iter().filter(|way| circles.part.get(from) == circles.part.get(way.to)) {
                if let Some(by) = way.by.filter(|by| by.is_here && told.insert(by.id.span)) {
                    findings.report(circles.report(way.to, by, facts, findings.may_advise()));
                }
            }
        }
    }
}

/// The reasons at which something is inserted; none, where nothing is, for the calls alone.
fn reasons(calls: &Calls<'_, '_>) -> Vec<Option<&'static str>> {
    let used: BTreeSet<&str> = calls.ways.iter().flatten().filter_map(|way| way.reason).collect();
    if used.is_empty() {
        return vec![None];
    }
    REASONS.into_iter().filter(|reason| used.contains(reason)).map(Some).collect()
}

/// What is called at any time, or inserted at this reason.
fn circles<'f>(calls: &Calls<'f, '_>, reason: Option<&'static str>) -> Circles<'f> {
    let counts = |way: &&CallEdge<'f>| way.sure && (way.reason.is_none() || way.reason == reason);
    let ways: Vec<Vec<CallEdge<'f>>> =
        calls.ways.iter().map(|ways| ways.iter().filter(counts).copied().collect()).collect();
    let part = components(ways.len(), |node, nth| ways.get(node)?.get(nth).map(|way| way.to));
    Circles { ways, part }
}

/// The ways of one reason.
struct Circles<'f> {
    ways: Vec<Vec<CallEdge<'f>>>,
    /// Of each node the part: those of one part lead to each other.
    part: Vec<usize>,
}

impl Circles<'_> {
    fn report(&self, to: usize, by: CallKind<'_>, facts: &SemanticModel<'_>, advise: bool) -> Diagnostic {
        let id = shortened(&by.id.value);
        let diagnostic = if by.inserts {
            let message = msg!("this inserts `{id}` again from inside `{id}`");
            let help = "this would never end: insert something else here, or continue with `next`";
            Diagnostic::error("insert-itself", message, facts.file, by.id.span).with_help(help)
        } else {
            let message = msg!("this calls `{id}` again from inside `{id}`");
            let help = "this would never end: call another skill, or remove this call";
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
        let ends = |way: &CallEdge<'_>| way.by.is_some_and(|by| by.is_here && by.id.span == end);
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
                    true => msg!("`{}` is called here, as part of the cycle", shortened(&by.id.value)),
                    false => msg!("which then calls this one"),
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
