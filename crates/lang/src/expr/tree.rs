//! An expression as a tree of our own: minijinja's borrows its source and says `last_span` where we need a place.

use std::ops::Range;

use minijinja::value::Value;

use crate::expr::operators::Operator;

/// A part of an expression and where it stands in the source, in bytes.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it stands, from its first to its last part; brackets around the whole are not in it.
    pub range: Range<usize>,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A name.
    Name(String),
    /// A constant.
    Constant(Value),
    /// `not x`
    Not(Box<Node>),
    /// `-x`
    Negate(Box<Node>),
    /// `x and y`
    And(Box<Node>, Box<Node>),
    /// `x or y`
    Or(Box<Node>, Box<Node>),
    /// `x + y`, `x == y`, …
    Operation(Operator, Box<Node>, Box<Node>),
    /// `x < y <= z`: each neighbouring pair must hold.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    /// `yes if test else no`; without `else` it is null.
    Choice {
        /// What decides.
        test: Box<Node>,
        /// What it is when the test holds.
        yes: Box<Node>,
        /// What it is otherwise.
        no: Option<Box<Node>>,
    },
    /// `x | name(arguments)`
    Filter(String, Box<Node>, Vec<Argument>),
    /// `x is name(arguments)`
    Test(String, Box<Node>, Vec<Argument>),
    /// `x.name`
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
    /// `[x, y]`, `(x, y)`
    List(Vec<Node>),
    /// `{key: x}`
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
