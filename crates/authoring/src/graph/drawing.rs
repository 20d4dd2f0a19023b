//! A drawing: boxes, groups of boxes and arrows, with their texts as people read them. How it is written is not said here.

use crate::graph::parts::{Kind, Lead};

/// What stands in a drawing.
#[derive(Clone, Debug)]
pub enum Item {
    /// A box.
    Box(Node),
    /// A frame around others.
    Group(Group),
}

impl Item {
    /// The number of a frame.
    pub fn group(&self) -> Option<usize> {
        match self {
            Self::Group(group) => Some(group.number),
            Self::Box(_) => None,
        }
    }
}

/// A box.
#[derive(Clone, Debug)]
pub struct Node {
    /// The number of what it shows, unique in the drawing.
    pub number: usize,
    /// What it shows.
    pub kind: Kind,
    /// Whether it stands for more than itself.
    pub folded: bool,
    /// Its text, line by line.
    pub lines: Vec<String>,
}

/// A frame around others.
#[derive(Clone, Debug)]
pub struct Group {
    /// The number of what it shows.
    pub number: usize,
    /// What it shows.
    pub kind: Kind,
    /// Its name, in one line.
    pub title: String,
    /// What else is told of it, line by line.
    pub notes: Vec<String>,
    /// What stands in it; never empty.
    pub items: Vec<Item>,
}

/// An arrow.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The box where it begins.
    pub from: usize,
    /// The box where it ends.
    pub to: usize,
    /// How the one leads to the other.
    pub lead: Lead,
    /// Its text, line by line; none for the order of the script.
    pub lines: Vec<String>,
}

/// A drawing.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// What stands in it, in the order of the script.
    pub items: Vec<Item>,
    /// Its arrows.
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

    /// The number of its boxes.
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
