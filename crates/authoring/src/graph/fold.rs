//! Selects which parts of a script are drawn, and folds the others into their parents.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode, Group};
use crate::graph::label::cut;
use crate::graph::references::add_references;
use crate::graph::runs::runs;
use crate::graph::script_graph::{Edge, EdgeKind, GraphNodeKind, NodeState, ScriptGraph, ScriptPart};

/// The maximum number of texts on an arrow and of lines in a box; the others are counted.
const MAX_LINES: usize = 4;

/// The source, the target and the kind of an arrow.
type EdgeKey = (usize, usize, EdgeKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    Phases,
    Topics,
    /// The actions; runs of plain actions are one box.
    Actions,
    All,
}

/// Draws a script, unfolded to `depth`. If `only` contains phases and topics, by their numbers, just these are
/// unfolded, and everything else is drawn as phases.
pub fn fold(graph: &ScriptGraph, depth: Depth, only: &BTreeSet<usize>) -> Drawing {
    let runs = if depth == Depth::Actions { runs(graph) } else { BTreeMap::new() };
    Folding { graph, depth, only, runs }.drawing()
}

struct Folding<'w> {
    graph: &'w ScriptGraph,
    depth: Depth,
    only: &'w BTreeSet<usize>,
    /// The first action of the run, for every action in a run.
    runs: BTreeMap<usize, usize>,
}

impl Folding<'_> {
    fn drawing(&self) -> Drawing {
        let graph = self.graph;
        let arrows = self.arrows();
        let connected: BTreeSet<usize> = arrows.iter().flat_map(|arrow| [arrow.from, arrow.to]).collect();
        // The failure node is drawn only if something leads to it.
        let shown = |number: &usize| {
            graph.parts.get(*number).is_some_and(|part| match part.kind {
                GraphNodeKind::Fail => connected.contains(number),
                GraphNodeKind::Table => connected.contains(number) || !part.notes.is_empty(),
                // With `only`, skills are drawn only if they are called.
                GraphNodeKind::Skill => self.only.is_empty() || connected.contains(number),
                _ => true,
            })
        };
        let items = graph.children(None).filter(shown).map(|number| self.item(number)).collect();
        add_references(Drawing { items, arrows }, graph)
    }

    fn is_open(&self, number: usize) -> bool {
        let Some(part) = self.graph.parts.get(number) else { return false };
        if !self.only.is_empty() {
            let topics = || self.graph.children(Some(number)).any(|topic| self.only.contains(&topic));
            let parent_selected = part.parent.is_some_and(|parent| self.only.contains(&parent));
            return match part.kind {
                GraphNodeKind::Phase => self.only.contains(&number) || topics(),
                GraphNodeKind::Branch => part.parent.is_some_and(|parent| self.is_open(parent)),
                GraphNodeKind::Topic => {
                    (self.only.contains(&number) || parent_selected) && self.depth >= Depth::Actions
                }
                _ => false,
            };
        }
        match part.kind {
            GraphNodeKind::Phase => self.depth >= Depth::Topics,
            GraphNodeKind::Topic | GraphNodeKind::Skill | GraphNodeKind::Branch => self.depth >= Depth::Actions,
            _ => false,
        }
    }

    fn part(&self, number: usize) -> Option<&ScriptPart> {
        self.graph.parts.get(number)
    }

    /// The box that shows a part: its own, or that of the parent that it is folded into.
    fn shown(&self, number: usize) -> usize {
        let mut shown = self.runs.get(&number).copied().unwrap_or(number);
        let mut at = number;
        while let Some(parent) = self.part(at).and_then(|part| part.parent) {
            if !self.is_open(parent) {
                shown = parent;
            }
            at = parent;
        }
        shown
    }

    fn item(&self, number: usize) -> DrawingItem {
        let graph = self.graph;
        let kind = self.part(number).map_or(GraphNodeKind::Action, |part| part.kind);
        if self.is_open(number) {
            let inside =
                graph.children(Some(number)).filter(|inner| self.runs.get(inner).is_none_or(|head| head == inner));
            let items: Vec<DrawingItem> = inside.map(|inner| self.item(inner)).collect();
            if !items.is_empty() {
                let (title, notes) = self.title(number);
                return DrawingItem::Group(Group { number, kind, title, notes, items });
            }
        }
        let mut lines = self.head(number);
        let is_container =
            matches!(kind, GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Skill | GraphNodeKind::Branch);
        let members: Vec<usize> =
            self.runs.iter().filter(|(_, head)| **head == number).map(|(member, _)| *member).collect();
        if is_container {
            lines.extend(self.content_counts(number));
        }
        if let (Some(first), Some(last)) = (members.first(), members.last()) {
            let id = |number: usize| self.part(number).map(|part| cut(&part.id)).unwrap_or_default();
            lines = vec![format!("{} actions", members.len()), id(*first), format!("… {}", id(*last))];
            lines.extend(self.kinds(&members));
        }
        let state = if members.is_empty() { self.state(number) } else { self.highest_state(members.iter().copied()) };
        DrawingItem::Box(DrawingNode { number, kind, folded: is_container || !members.is_empty(), lines, state })
    }

    /// The state of an action, or the most important one of the actions in a part.
    fn state(&self, number: usize) -> Option<NodeState> {
        if !self.graph.marked {
            return None;
        }
        let own = self.part(number).and_then(|part| part.state);
        own.or_else(|| self.highest_state(self.graph.children(Some(number))))
    }

    fn highest_state(&self, numbers: impl Iterator<Item = usize>) -> Option<NodeState> {
        numbers.filter_map(|number| self.state(number)).max()
    }

    fn head(&self, number: usize) -> Vec<String> {
        let Some(part) = self.part(number) else { return vec![] };
        let name = part.name.as_deref().filter(|name| *name != part.id);
        let id = (!part.id.is_empty()).then_some(part.id.as_str());
        let mut lines: Vec<String> = match part.kind {
            GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Start | GraphNodeKind::Table => {
                name.into_iter().chain(id).map(cut).collect()
            }
            GraphNodeKind::Action | GraphNodeKind::Choice | GraphNodeKind::Approval => {
                [part.id.as_str(), part.action_type].map(cut).to_vec()
            }
            GraphNodeKind::Skill => vec![cut(&format!("skill {}", part.id))],
            GraphNodeKind::Branch => vec![cut(&format!("branch {}", part.id))],
            GraphNodeKind::Trigger => vec![cut(&format!("trigger {}", part.id))],
            GraphNodeKind::End => vec!["end".to_owned()],
            GraphNodeKind::Fail => vec!["fail".to_owned()],
            GraphNodeKind::Reference => vec![],
        };
        lines.extend(self.notes(part));
        lines
    }

    fn notes(&self, part: &ScriptPart) -> Vec<String> {
        let more = part.notes.len().saturating_sub(MAX_LINES);
        let shown_count = if more > 1 { MAX_LINES - 1 } else { MAX_LINES };
        let notes = part.notes.iter().take(shown_count).map(|note| cut(note));
        notes.chain((more > 1).then(|| format!("and {} more", part.notes.len() - shown_count))).collect()
    }

    /// The title of a group, and its notes.
    fn title(&self, number: usize) -> (String, Vec<String>) {
        let Some(part) = self.part(number) else { return (String::new(), vec![]) };
        let title = match (part.kind, part.name.as_deref().filter(|name| *name != part.id)) {
            (GraphNodeKind::Skill, _) => format!("skill {}", part.id),
            (GraphNodeKind::Branch, _) => format!("branch {}", part.id),
            (_, Some(name)) => format!("{name} ({})", part.id),
            (_, None) => part.id.clone(),
        };
        (cut(&title), self.notes(part))
    }

    fn content_counts(&self, number: usize) -> Vec<String> {
        let topics: Vec<usize> =
            self.graph.children(Some(number)).filter(|inner| self.is(*inner, GraphNodeKind::Topic)).collect();
        let holders = topics.iter().copied().chain([number]);
        let inside = holders.flat_map(|parent| self.graph.children(Some(parent)));
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

    /// The arrows; parallel edges between the same boxes are merged.
    fn arrows(&self) -> Vec<Arrow> {
        let mut order: Vec<EdgeKey> = Vec::new();
        let mut merged: BTreeMap<EdgeKey, Vec<&Edge>> = BTreeMap::new();
        for link in &self.graph.links {
            let (from, to) = (self.shown(link.from), self.shown(self.graph.entry(link.to)));
            // Edges within a folded box are not drawn.
            let inner = from == to && (link.from != from || self.runs.contains_key(&from));
            if inner {
                continue;
            }
            let lead = match link.kind {
                EdgeKind::Case if from != link.from => EdgeKind::Route,
                lead => lead,
            };
            let links = merged.entry((from, to, lead)).or_default();
            if links.is_empty() {
                order.push((from, to, lead));
            }
            links.push(link);
        }
        let arrow = |key: EdgeKey| {
            let links = merged.get(&key).map(Vec::as_slice).unwrap_or_default();
            let (from, to, lead) = key;
            Arrow { from, to, kind: lead, lines: texts(from, links) }
        };
        order.into_iter().map(arrow).collect()
    }
}

/// The texts of an arrow. Edges that start inside a folded box get their short labels, with counts.
fn texts(shown: usize, links: &[&Edge]) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for link in links {
        let text = if shown == link.from { cut(&link.label) } else { cut(&link.short_label) };
        if text.is_empty() {
            continue;
        }
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let more = counts.len().saturating_sub(MAX_LINES);
    let shown_count = if more > 0 { MAX_LINES - 1 } else { MAX_LINES };
    let remainder: usize = counts.iter().skip(shown_count).map(|(_, count)| count).sum();
    let shown = counts
        .iter()
        .take(shown_count)
        .map(|(text, count)| if *count > 1 { format!("{text} × {count}") } else { text.clone() });
    shown.chain((remainder > 0).then(|| format!("and {remainder} more"))).collect()
}
