//! A drawing: boxes, groups of boxes and arrows, with their texts as people read them. How it is written is not said here.

use crate::graph::parts::{Kind, Lead};

#[derive(Clone, Debug)]
pub enum Item {
    Box(Node),
    Group(Group),
}

impl Item {
    pub fn group(&self) -> Option<usize> {
        match self {
            Self::Group(group) => Some(group.number),
            Self::Box(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    /// The number of what it shows, unique in the drawing.
    pub number: usize,
    pub kind: Kind,
    /// Whether it stands for more than itself.
    pub folded: bool,
    pub lines: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub number: usize,
    pub kind: Kind,
    pub title: String,
    /// What else is told of it, line by line.
    pub notes: Vec<String>,
    /// What stands in it; never empty.
    pub items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub lead: Lead,
    /// Its text, line by line; none for the order of the script.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// What stands in it, in the order of the script.
    pub items: Vec<Item>,
    pub arrows: Vec<Arrow>,
}

impl Drawing {
    /// Whether arrows end in names of other boxes, and nothing leads from frame to frame.
    pub fn refers(&self) -> bool {
        fn any(items: &[Item]) -> bool {
            items.iter().any(|item| match item {
                Item::Box(node) => node.kind == Kind::Reference,
                Item::Group(group) => any(&group.items),
            })
        }
        any(&self.items)
    }

    pub fn boxes(&self) -> usize {
        fn count(items: &[Item]) -> usize {
            let one = |item: &Item| match item {
                Item::Box(_) => 1,
                Item::Group(group) => count(&group.items),
            };
            items.iter().map(one).sum()
        }
        count(&self.items)
    }
}
