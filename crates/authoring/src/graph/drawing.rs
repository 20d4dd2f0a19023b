//! A drawing: boxes, groups of boxes and arrows with their texts, independent of the output format.

use crate::graph::script_graph::{EdgeKind, GraphNodeKind, NodeState};

#[derive(Clone, Debug)]
pub enum DrawingItem {
    Box(DrawingNode),
    Group(Group),
}

impl DrawingItem {
    pub fn group(&self) -> Option<usize> {
        match self {
            Self::Group(group) => Some(group.number),
            Self::Box(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct DrawingNode {
    /// The number of the part that it shows, unique in the drawing.
    pub number: usize,
    pub kind: GraphNodeKind,
    /// Whether it represents several parts.
    pub folded: bool,
    pub lines: Vec<String>,
    /// What a session did with what it shows, if one was given.
    pub state: Option<NodeState>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub number: usize,
    pub kind: GraphNodeKind,
    pub title: String,
    /// Additional information, one entry per line.
    pub notes: Vec<String>,
    /// The contents; never empty.
    pub items: Vec<DrawingItem>,
}

#[derive(Clone, Debug)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
    /// The label, one entry per line; empty for the order of the script.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// The contents, in the order of the script.
    pub items: Vec<DrawingItem>,
    pub arrows: Vec<Arrow>,
}

impl Drawing {
    /// Whether the drawing contains references, so that no arrow connects two groups.
    pub fn refers(&self) -> bool {
        fn any(items: &[DrawingItem]) -> bool {
            items.iter().any(|item| match item {
                DrawingItem::Box(node) => node.kind == GraphNodeKind::Reference,
                DrawingItem::Group(group) => any(&group.items),
            })
        }
        any(&self.items)
    }

    /// Whether it shows what a session did.
    pub fn has_states(&self) -> bool {
        fn any(items: &[DrawingItem]) -> bool {
            items.iter().any(|item| match item {
                DrawingItem::Box(node) => node.state.is_some(),
                DrawingItem::Group(group) => any(&group.items),
            })
        }
        any(&self.items)
    }

    pub fn boxes(&self) -> usize {
        fn count(items: &[DrawingItem]) -> usize {
            let one = |item: &DrawingItem| match item {
                DrawingItem::Box(_) => 1,
                DrawingItem::Group(group) => count(&group.items),
            };
            items.iter().map(one).sum()
        }
        count(&self.items)
    }
}
