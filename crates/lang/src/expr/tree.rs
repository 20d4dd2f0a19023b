//! An expression as a tree of our own: minijinja's borrows its source and says `last_span` where we need a place.

use std::ops::Range;

use minijinja::value::Value;

use crate::expr::operators::Operator;

/// A part of an expression and where it stands in the source, in bytes.
#[derive(Clone, Debug)]
pub struct ExprNode {
    pub kind: ExprKind,
    /// Where it stands, from its first to its last part; brackets around the whole are not in it.
    pub range: Range<usize>,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    Name(String),
    Constant(Value),
    Not(Box<ExprNode>),
    Negate(Box<ExprNode>),
    And(Box<ExprNode>, Box<ExprNode>),
    Or(Box<ExprNode>, Box<ExprNode>),
    /// `x + y`, `x == y`, …
    Operation(Operator, Box<ExprNode>, Box<ExprNode>),
    /// `x < y <= z`: each neighbouring pair must hold.
    Chain(Box<ExprNode>, Vec<(Operator, ExprNode)>),
    /// `yes if test else no`; without `else` it is null.
    Choice {
        test: Box<ExprNode>,
        yes: Box<ExprNode>,
        /// What it is otherwise.
        no: Option<Box<ExprNode>>,
    },
    /// `x | name(arguments)`
    Filter(String, Box<ExprNode>, Vec<Argument>),
    /// `x is name(arguments)`
    Test(String, Box<ExprNode>, Vec<Argument>),
    Attribute(Box<ExprNode>, String),
    /// `x[key]`
    Item(Box<ExprNode>, Box<ExprNode>),
    /// `x[start:stop:step]`
    Slice {
        /// What is sliced.
        of: Box<ExprNode>,
        /// The first index, 0 without one.
        start: Option<Box<ExprNode>>,
        /// The index after the last, the length without one.
        stop: Option<Box<ExprNode>>,
        /// The distance, 1 or more.
        step: usize,
    },
    /// `name(arguments)`
    Call(String, Vec<Argument>),
    List(Vec<ExprNode>),
    Map(Vec<(ExprNode, ExprNode)>),
}

/// What stands in the brackets of a filter, test or function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `x`
    Plain(ExprNode),
    /// `name=x`
    Named(String, ExprNode),
}

impl ExprNode {
    /// Calls `see` with each part of which it is made, in the order of the source.
    pub fn each_part<'n>(&'n self, see: &mut dyn FnMut(&'n Self)) {
        let plain = |argument: &'n Argument| match argument {
            Argument::Plain(node) | Argument::Named(_, node) => node,
        };
        match &self.kind {
            ExprKind::Name(_) | ExprKind::Constant(_) => {}
            ExprKind::Not(of) | ExprKind::Negate(of) | ExprKind::Attribute(of, _) => see(of),
            ExprKind::And(one, two)
            | ExprKind::Or(one, two)
            | ExprKind::Operation(_, one, two)
            | ExprKind::Item(one, two) => {
                see(one);
                see(two);
            }
            ExprKind::Chain(first, rest) => {
                see(first);
                rest.iter().for_each(|(_, node)| see(node));
            }
            ExprKind::Choice { test, yes, no } => {
                see(yes);
                see(test);
                no.iter().for_each(|no| see(no));
            }
            ExprKind::Filter(_, of, arguments) | ExprKind::Test(_, of, arguments) => {
                see(of);
                arguments.iter().map(plain).for_each(see);
            }
            ExprKind::Slice { of, start, stop, step: _ } => {
                see(of);
                start.iter().chain(stop).for_each(|part| see(part));
            }
            ExprKind::Call(_, arguments) => arguments.iter().map(plain).for_each(see),
            ExprKind::List(items) => items.iter().for_each(see),
            ExprKind::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).for_each(see),
        }
    }
}
