//! Large drawings: an arrow that leaves its phase ends in a small box that names where it leads, so that phases stand side
//! by side and nothing crosses them.

use std::collections::BTreeMap;

use crate::graph::drawing::{Arrow, Drawing, DrawingItem, DrawingNode};
use crate::graph::label::cut;
use crate::graph::script_graph::{GraphNodeKind, ScriptGraph, ScriptPart};

/// Drawings of at most so many boxes keep all their arrows.
const FEW_BOXES: usize = 40;

/// The same drawing, with references in place of long arrows when it is a large one.
pub fn refer(drawing: Drawing, whole: &ScriptGraph) -> Drawing {
    if drawing.boxes() <= FEW_BOXES {
        return drawing;
    }
    let mut references = References { whole, known: BTreeMap::new(), boxes: vec![] };
    let Drawing { items, arrows } = drawing;
    let groups: Vec<usize> = items.iter().filter_map(DrawingItem::group).collect();
    let arrows: Vec<Arrow> = arrows.into_iter().map(|arrow| references.short(arrow, &groups)).collect();
    let mut items = items;
    for (home, node) in references.boxes {
        let home = items.iter_mut().find_map(|item| match item {
            DrawingItem::Group(group) if Some(group.number) == home => Some(&mut group.items),
            _ => None,
        });
        match home {
            Some(inside) => inside.push(DrawingItem::Box(node)),
            None => items.push(DrawingItem::Box(node)),
        }
    }
    // Where the session ends is named by every reference to it.
    let met = |number: usize| arrows.iter().any(|arrow| arrow.to == number);
    items.retain(|item| match item {
        DrawingItem::Box(node) => !matches!(node.kind, GraphNodeKind::End | GraphNodeKind::Fail) || met(node.number),
        DrawingItem::Group(_) => true,
    });
    Drawing { items, arrows }
}

struct References<'w> {
    whole: &'w ScriptGraph,
    /// The boxes that there are, by the frame in which they stand and the box that they name.
    known: BTreeMap<(Option<usize>, usize), usize>,
    boxes: Vec<(Option<usize>, DrawingNode)>,
}

impl References<'_> {
    fn short(&mut self, arrow: Arrow, groups: &[usize]) -> Arrow {
        let (from, to) = (self.outermost(arrow.from), self.outermost(arrow.to));
        // Between boxes that stand free there is nothing to cross.
        let is_framed = |number| groups.contains(&number);
        if from == to || !is_framed(from) && !is_framed(to) {
            return arrow;
        }
        let home = is_framed(from).then_some(from);
        let next = self.whole.parts.len() + self.boxes.len();
        let number = *self.known.entry((home, arrow.to)).or_insert(next);
        if number == next {
            let lines = vec![format!("→ {}", self.name(arrow.to))];
            self.boxes.push((home, DrawingNode { number, kind: GraphNodeKind::Reference, folded: false, lines }));
        }
        Arrow { to: number, ..arrow }
    }

    /// What a box is called elsewhere: a phase, where it is the first of it.
    fn name(&self, number: usize) -> String {
        let mut at = number;
        while let Some(holder) = self.part(at).and_then(|part| part.holder) {
            let first = self.whole.entry(holder);
            if first != number && first != self.whole.entry(number) {
                break;
            }
            at = holder;
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
        while let Some(holder) = self.part(at).and_then(|part| part.holder) {
            at = holder;
        }
        at
    }

    fn part(&self, number: usize) -> Option<&ScriptPart> {
        self.whole.parts.get(number)
    }
}
