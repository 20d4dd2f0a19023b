//! A drawing: boxes, groups of boxes and arrows, with their texts as people read them. How it is written is not said here.

use crate::graph::script_graph::{EdgeKind, GraphNodeKind};

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
    /// The number of what it shows, unique in the drawing.
    pub number: usize,
    pub kind: GraphNodeKind,
    /// Whether it stands for more than itself.
    pub folded: bool,
    pub lines: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub number: usize,
    pub kind: GraphNodeKind,
    pub title: String,
    /// What else is told of it, line by line.
    pub notes: Vec<String>,
    /// What stands in it; never empty.
    pub items: Vec<DrawingItem>,
}

#[derive(Clone, Debug)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub lead: EdgeKind,
    /// Its text, line by line; none for the order of the script.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// What stands in it, in the order of the script.
    pub items: Vec<DrawingItem>,
    pub arrows: Vec<Arrow>,
}

impl Drawing {
    /// Whether arrows end in names of other boxes, and nothing leads from frame to frame.
    pub fn refers(&self) -> bool {
        fn any(items: &[DrawingItem]) -> bool {
            items.iter().any(|item| match item {
                DrawingItem::Box(node) => node.kind == GraphNodeKind::Reference,
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
