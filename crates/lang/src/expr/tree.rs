//! The syntax tree of expressions. The tree of minijinja borrows its source, and its spans do not always cover the complete node.

use std::ops::Range;

use minijinja::value::Value;

use crate::expr::operators::Operator;

/// A part of an expression and its byte range in the source.
#[derive(Clone, Debug)]
pub struct ExprNode {
    pub kind: ExprKind,
    /// From its first to its last part, without brackets around it.
    pub range: Range<usize>,
}

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
    /// `x < y <= z`: each adjacent pair must be true.
    Chain(Box<ExprNode>, Vec<(Operator, ExprNode)>),
    /// `yes if test else no`; null without `else`.
    Choice {
        test: Box<ExprNode>,
        yes: Box<ExprNode>,
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
        of: Box<ExprNode>,
        /// The first index; 0 by default.
        start: Option<Box<ExprNode>>,
        /// The index after the last; the length by default.
        stop: Option<Box<ExprNode>>,
        /// The step, at least 1.
        step: usize,
    },
    /// `name(arguments)`
    Call(String, Vec<Argument>),
    /// A call that only minijinja can make (`loop()`, `super()`, a method), by its position among those of the expression. Only in
    /// texts and templates.
    NativeCall(usize),
    List(Vec<ExprNode>),
    Map(Vec<(ExprNode, ExprNode)>),
}

/// An argument of a filter, test or function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `x`
    Plain(ExprNode),
    /// `name=x`
    Named(String, ExprNode),
}

impl ExprNode {
    /// Calls `callback` with each direct part, in source order.
    pub fn each_part<'n>(&'n self, callback: &mut dyn FnMut(&'n Self)) {
        let plain = |argument: &'n Argument| match argument {
            Argument::Plain(node) | Argument::Named(_, node) => node,
        };
        match &self.kind {
            ExprKind::Name(_) | ExprKind::Constant(_) | ExprKind::NativeCall(_) => {}
            ExprKind::Not(of) | ExprKind::Negate(of) | ExprKind::Attribute(of, _) => callback(of),
            ExprKind::And(one, two)
            | ExprKind::Or(one, two)
            | ExprKind::Operation(_, one, two)
            | ExprKind::Item(one, two) => {
                callback(one);
                callback(two);
            }
            ExprKind::Chain(first, rest) => {
                callback(first);
                rest.iter().for_each(|(_, node)| callback(node));
            }
            ExprKind::Choice { test, yes, no } => {
                callback(yes);
                callback(test);
                no.iter().for_each(|no| callback(no));
            }
            ExprKind::Filter(_, of, arguments) | ExprKind::Test(_, of, arguments) => {
                callback(of);
                arguments.iter().map(plain).for_each(callback);
            }
            ExprKind::Slice { of, start, stop, step: _ } => {
                callback(of);
                start.iter().chain(stop).for_each(|part| callback(part));
            }
            ExprKind::Call(_, arguments) => arguments.iter().map(plain).for_each(callback),
            ExprKind::List(items) => items.iter().for_each(callback),
            ExprKind::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).for_each(callback),
        }
    }
}

/// `range` with the opening brackets before it that are closed inside it: the range of an operation starts after the bracket around its
/// first operand.
pub fn balanced(source: &str, range: &Range<usize>) -> Range<usize> {
    let (mut open, mut missing, mut quote) = (0usize, 0usize, None);
    for c in source.get(range.clone()).unwrap_or_default().chars() {
        match (quote, c) {
            (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != c),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => open += 1,
            (None, ')') if open > 0 => open -= 1,
            (None, ')') => missing += 1,
            _ => {}
        }
    }
    let mut start = range.start;
    for _ in 0..missing {
        let before = source.get(..start).unwrap_or_default().trim_end();
        start = if before.ends_with('(') { before.len() - 1 } else { start };
    }
    start..range.end
}
