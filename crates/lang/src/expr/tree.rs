//! An expression as a tree of our own: minijinja's borrows its source and says `last_span` where we need a place.

use std::ops::Range;

use minijinja::value::Value;

use crate::expr::operators::Operator;

/// A part of an expression and where it stands in the source, in bytes.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// Where it stands, from its first to its last part; brackets around the whole are not in it.
    pub range: Range<usize>,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
pub enum Kind {
    Name(String),
    Constant(Value),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// `x + y`, `x == y`, …
    Operation(Operator, Box<Node>, Box<Node>),
    /// `x < y <= z`: each neighbouring pair must hold.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    /// `yes if test else no`; without `else` it is null.
    Choice {
        test: Box<Node>,
        yes: Box<Node>,
        /// What it is otherwise.
        no: Option<Box<Node>>,
    },
    /// `x | name(arguments)`
    Filter(String, Box<Node>, Vec<Argument>),
    /// `x is name(arguments)`
    Test(String, Box<Node>, Vec<Argument>),
    Attribute(Box<Node>, String),
    /// `x[key]`
    Item(Box<Node>, Box<Node>),
    /// `x[start:stop:step]`
    Slice {
        /// What is sliced.
        of: Box<Node>,
        /// The first index, 0 without one.
        start: Option<Box<Node>>,
        /// The index after the last, the length without one.
        stop: Option<Box<Node>>,
        /// The distance, 1 or more.
        step: usize,
    },
    /// `name(arguments)`
    Call(String, Vec<Argument>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// What stands in the brackets of a filter, test or function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `x`
    Plain(Node),
    /// `name=x`
    Named(String, Node),
}
