//! What of a script is drawn, and what is folded into what holds it.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode, Group};
use crate::graph::label::cut;
use crate::graph::references::refer;
use crate::graph::runs::runs;
use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, ScriptGraph, ScriptPart};

/// The most texts on one arrow, and the most lines in one box; the rest is counted.
const MOST_LINES: usize = 4;

/// Where an arrow begins and ends, and how the one leads to the other.
type Ends = (usize, usize, EdgeKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Phases,
    Topics,
    /// Their actions; runs of plain ones are one box.
    Actions,
    All,
}

/// Draws a script, so far unfolded. With `only`, phases and topics by their numbers, just these are, and the rest is drawn as
/// its phases.
pub fn fold(whole: &ScriptGraph, depth: Depth, only: &BTreeSet<usize>) -> Drawing {
    let runs = if depth == Depth::Actions { runs(whole) } else { BTreeMap::new() };
    Folding { whole, depth, only, runs }.drawing()
}

struct Folding<'w> {
    whole: &'w ScriptGraph,
    depth: Depth,
    only: &'w BTreeSet<usize>,
    /// The head of its run, for every action in one.
    runs: BTreeMap<usize, usize>,
}

impl Folding<'_> {
    fn drawing(&self) -> Drawing {
        let whole = self.whole;
        let arrows = self.arrows();
        let met: BTreeSet<usize> = arrows.iter().flat_map(|arrow| [arrow.from, arrow.to]).collect();
        // Nobody comes to a place of failure to which nothing leads.
        let shown = |number: &usize| {
            whole.parts.get(*number).is_some_and(|part| match part.kind {
                GraphNodeKind::Fail => met.contains(number),
                GraphNodeKind::Table => met.contains(number) || !part.notes.is_empty(),
                // Of a part of a script, what it calls is enough.
                GraphNodeKind::Skill => self.only.is_empty() || met.contains(number),
                _ => true,
            })
        };
        let items = whole.inside(None).filter(shown).map(|number| self.item(number)).collect();
        refer(Drawing { items, arrows }, whole)
    }

    fn is_open(&self, number: usize) -> bool {
        let Some(part) = self.whole.parts.get(number) else { return false };
        if !self.only.is_empty() {
            let topics = || self.whole.inside(Some(number)).any(|topic| self.only.contains(&topic));
            let held = part.holder.is_some_and(|holder| self.only.contains(&holder));
            return match part.kind {
                GraphNodeKind::Phase => self.only.contains(&number) || topics(),
                GraphNodeKind::Topic => (self.only.contains(&number) || held) && self.depth >= Depth::Actions,
                _ => false,
            };
        }
        match part.kind {
            GraphNodeKind::Phase => self.depth >= Depth::Topics,
            GraphNodeKind::Topic | GraphNodeKind::Skill => self.depth >= Depth::Actions,
            _ => false,
        }
    }

    fn part(&self, number: usize) -> Option<&ScriptPart> {
        self.whole.parts.get(number)
    }

    /// The box that shows a part: its own, or that of what it is folded into.
    fn shown(&self, number: usize) -> usize {
        let mut shown = self.runs.get(&number).copied().unwrap_or(number);
        let mut at = number;
        while let Some(holder) = self.part(at).and_then(|part| part.holder) {
            if !self.is_open(holder) {
                shown = holder;
            }
            at = holder;
        }
        shown
    }

    fn item(&self, number: usize) -> DrawingItem {
        let whole = self.whole;
        let kind = self.part(number).map_or(GraphNodeKind::Action, |part| part.kind);
        if self.is_open(number) {
            let inside =
                whole.inside(Some(number)).filter(|inner| self.runs.get(inner).is_none_or(|head| head == inner));
            let items: Vec<DrawingItem> = inside.map(|inner| self.item(inner)).collect();
            if !items.is_empty() {
                let (title, notes) = self.title(number);
                return DrawingItem::Group(Group { number, kind, title, notes, items });
            }
        }
        let mut lines = self.head(number);
        let holds = matches!(kind, GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Skill);
        let members: Vec<usize> =
            self.runs.iter().filter(|(_, head)| **head == number).map(|(member, _)| *member).collect();
        if holds {
            lines.extend(self.held(number));
        }
        if let (Some(first), Some(last)) = (members.first(), members.last()) {
            let id = |number: usize| self.part(number).map(|part| cut(&part.id)).unwrap_or_default();
            lines = vec![format!("{} actions", members.len()), id(*first), format!("… {}", id(*last))];
            lines.extend(self.kinds(&members));
        }
        DrawingItem::Box(DrawingNode { number, kind, folded: holds || !members.is_empty(), lines })
    }

    fn head(&self, number: usize) -> Vec<String> {
        let Some(part) = self.part(number) else { return vec![] };
        let name = part.name.as_deref().filter(|name| *name != part.id);
        let id = (!part.id.is_empty()).then_some(part.id.as_str());
        let mut lines: Vec<String> = match part.kind {
            GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Start | GraphNodeKind::Table => {
                name.into_iter().chain(id).map(cut).collect()
            }
            GraphNodeKind::Action | GraphNodeKind::Choice => [part.id.as_str(), part.action_type].map(cut).to_vec(),
            GraphNodeKind::Skill => vec![cut(&format!("skill {}", part.id))],
            GraphNodeKind::Trigger => vec![cut(&format!("trigger {}", part.id))],
            GraphNodeKind::End => vec!["end".to_owned()],
            GraphNodeKind::Fail => vec!["fail".to_owned()],
            GraphNodeKind::Reference => vec![],
        };
        lines.extend(self.notes(part));
        lines
    }

    fn notes(&self, part: &ScriptPart) -> Vec<String> {
        let more = part.notes.len().saturating_sub(MOST_LINES);
        let kept = if more > 1 { MOST_LINES - 1 } else { MOST_LINES };
        let notes = part.notes.iter().take(kept).map(|note| cut(note));
        notes.chain((more > 1).then(|| format!("and {} more", part.notes.len() - kept))).collect()
    }

    /// The name of a frame, and what else is told of what it shows.
    fn title(&self, number: usize) -> (String, Vec<String>) {
        let Some(part) = self.part(number) else { return (String::new(), vec![]) };
        let title = match (part.kind, part.name.as_deref().filter(|name| *name != part.id)) {
            (GraphNodeKind::Skill, _) => format!("skill {}", part.id),
            (_, Some(name)) => format!("{name} ({})", part.id),
            (_, None) => part.id.clone(),
        };
        (cut(&title), self.notes(part))
    }

    fn held(&self, number: usize) -> Vec<String> {
        let topics: Vec<usize> =
            self.whole.inside(Some(number)).filter(|inner| self.is(*inner, GraphNodeKind::Topic)).collect();
        let holders = topics.iter().copied().chain([number]);
        let inside = holders.flat_map(|holder| self.whole.inside(Some(holder)));
        let actions = inside.filter(|inner| self.part(*inner).is_some_and(ScriptPart::is_action)).count();
        let counted = |count: usize, one: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {one}s")),
        };
        let counts = [counted(topics.len(), "topic"), counted(actions, "action")];
        let line = counts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if line.is_empty() { vec![] } else { vec![line] }
    }

    fn is(&self, number: usize, kind: GraphNodeKind) -> bool {
        self.part(number).is_some_and(|part| part.kind == kind)
    }

    fn kinds(&self, members: &[usize]) -> Vec<String> {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for member in members {
            *kinds.entry(self.part(*member).map_or("", |part| part.action_type)).or_default() += 1;
        }
        kinds.into_iter().map(|(kind, count)| format!("{count} × {kind}")).collect()
    }

    /// The arrows, with those that lead from one box to the same other as one.
    fn arrows(&self) -> Vec<Arrow> {
        let mut order: Vec<Ends> = Vec::new();
        let mut merged: BTreeMap<Ends, Vec<&Edge>> = BTreeMap::new();
        for link in &self.whole.links {
            let (from, to) = (self.shown(link.from), self.shown(self.whole.entry(link.to)));
            // What leads from a box that stands for many back into it is not seen from outside.
            let inner = from == to && (link.from != from || self.runs.contains_key(&from));
            if inner {
                continue;
            }
            let lead = match link.lead {
                EdgeKind::Case if from != link.from => EdgeKind::Route,
                lead => lead,
            };
            let links = merged.entry((from, to, lead)).or_default();
            if links.is_empty() {
                order.push((from, to, lead));
            }
            links.push(link);
        }
        let arrow = |key: Ends| {
            let links = merged.get(&key).map(Vec::as_slice).unwrap_or_default();
            let (from, to, lead) = key;
            Arrow { from, to, lead, lines: texts(from, links) }
        };
        order.into_iter().map(arrow).collect()
    }
}

/// The texts of an arrow. Of links that begin inside of a folded box, only in brief, with how many there are.
fn texts(shown: usize, links: &[&Edge]) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for link in links {
        let text = if shown == link.from { cut(&link.why) } else { cut(&link.brief) };
        if text.is_empty() {
            continue;
        }
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let more = counts.len().saturating_sub(MOST_LINES);
    let kept = if more > 0 { MOST_LINES - 1 } else { MOST_LINES };
    let rest: usize = counts.iter().skip(kept).map(|(_, count)| count).sum();
    let shown = counts
        .iter()
        .take(kept)
        .map(|(text, count)| if *count > 1 { format!("{text} × {count}") } else { text.clone() });
    shown.chain((rest > 0).then(|| format!("and {rest} more"))).collect()
}
