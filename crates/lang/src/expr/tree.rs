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

impl Node {
    /// Calls `see` with each part of which it is made, in the order of the source.
    pub fn each_part<'n>(&'n self, see: &mut dyn FnMut(&'n Self)) {
        let plain = |argument: &'n Argument| match argument {
            Argument::Plain(node) | Argument::Named(_, node) => node,
        };
        match &self.kind {
            Kind::Name(_) | Kind::Constant(_) => {}
            Kind::Not(of) | Kind::Negate(of) | Kind::Attribute(of, _) => see(of),
            Kind::And(one, two) | Kind::Or(one, two) | Kind::Operation(_, one, two) | Kind::Item(one, two) => {
                see(one);
                see(two);
            }
            Kind::Chain(first, rest) => {
                see(first);
                rest.iter().for_each(|(_, node)| see(node));
            }
            Kind::Choice { test, yes, no } => {
                see(yes);
                see(test);
                no.iter().for_each(|no| see(no));
            }
            Kind::Filter(_, of, arguments) | Kind::Test(_, of, arguments) => {
                see(of);
                arguments.iter().map(plain).for_each(see);
            }
            Kind::Slice { of, start, stop, step: _ } => {
                see(of);
                start.iter().chain(stop).for_each(|part| see(part));
            }
            Kind::Call(_, arguments) => arguments.iter().map(plain).for_each(see),
            Kind::List(items) => items.iter().for_each(see),
            Kind::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).for_each(see),
        }
    }
}
