//! Simplifies large drawings: an arrow that leaves its phase ends in a small box with the name of its target, so that
//! phases are drawn side by side without crossing arrows.

use std::collections::BTreeMap;

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode};
use crate::graph::label::cut;
use crate::graph::script_graph::{GraphNodeKind, ScriptGraph, ScriptPart};

/// Drawings with at most this number of boxes keep all their arrows.
const FEW_BOXES: usize = 40;

/// Replaces long arrows by references, if the drawing is large.
pub(crate) fn add_references(drawing: Drawing, graph: &ScriptGraph) -> Drawing {
    if drawing.boxes() <= FEW_BOXES {
        return drawing;
    }
    let mut references = References { graph, known: BTreeMap::new(), boxes: vec![] };
    let Drawing { items, arrows } = drawing;
    let groups: Vec<usize> = items.iter().filter_map(DrawingItem::group).collect();
    let arrows: Vec<Arrow> = arrows.into_iter().map(|arrow| references.shorten(arrow, &groups)).collect();
    let mut items = items;
    for (frame, node) in references.boxes {
        let frame = items.iter_mut().find_map(|item| match item {
            DrawingItem::Group(group) if Some(group.number) == frame => Some(&mut group.items),
            _ => None,
        });
        match frame {
            Some(inside) => inside.push(DrawingItem::Box(node)),
            None => items.push(DrawingItem::Box(node)),
        }
    }
    // References already name the end of the session.
    let met = |number: usize| arrows.iter().any(|arrow| arrow.to == number);
    items.retain(|item| match item {
        DrawingItem::Box(node) => !matches!(node.kind, GraphNodeKind::End | GraphNodeKind::Fail) || met(node.number),
        DrawingItem::Group(_) => true,
    });
    Drawing { items, arrows }
}

struct References<'w> {
    graph: &'w ScriptGraph,
    /// The references so far, by the group that contains them and the box that they name.
    known: BTreeMap<(Option<usize>, usize), usize>,
    boxes: Vec<(Option<usize>, DrawingNode)>,
}

impl References<'_> {
    fn shorten(&mut self, arrow: Arrow, groups: &[usize]) -> Arrow {
        let (from, to) = (self.outermost(arrow.from), self.outermost(arrow.to));
        // Arrows between boxes outside of groups cross nothing.
        let is_framed = |number| groups.contains(&number);
        if from == to || !is_framed(from) && !is_framed(to) {
            return arrow;
        }
        let frame = is_framed(from).then_some(from);
        let next = self.graph.parts.len() + self.boxes.len();
        let number = *self.known.entry((frame, arrow.to)).or_insert(next);
        if number == next {
            let lines = vec![format!("→ {}", self.name(arrow.to))];
            self.boxes.push((
                frame,
                DrawingNode { number, kind: GraphNodeKind::Reference, folded: false, lines, state: None },
            ));
        }
        Arrow { to: number, ..arrow }
    }

    /// The name of a box in a reference: the name of its phase, if it is the first box of the phase.
    fn name(&self, number: usize) -> String {
        let mut at = number;
        while let Some(parent) = self.part(at).and_then(|part| part.parent) {
            let first = self.graph.entry(parent);
            if first != number && first != self.graph.entry(number) {
                break;
            }
            at = parent;
        }
        let Some(part) = self.part(at) else { return String::new() };
        match part.kind {
            GraphNodeKind::End => "end".to_owned(),
            GraphNodeKind::Fail => "fail".to_owned(),
            GraphNodeKind::Skill => cut(&format!("skill {}", part.id)),
            _ => cut(part.name.as_deref().unwrap_or(&part.id)),
        }
    }

    fn outermost(&self, number: usize) -> usize {
        let mut at = number;
        while let Some(parent) = self.part(at).and_then(|part| part.parent) {
            at = parent;
        }
        at
    }

    fn part(&self, number: usize) -> Option<&ScriptPart> {
        self.graph.parts.get(number)
    }
}
