//! The names that an expression uses, in the order in which they stand in it.

use crate::expr::tree::{Argument, Kind, Node};
use crate::template::uses::NameUse;

/// The names under `root`. A name that is only asked for (`is defined`) or has a stand-in (`| default`), by itself or at
/// the root of `a.b.c`, is optional.
pub fn free_names(root: &Node) -> Vec<NameUse> {
    let mut names = Vec::new();
    walk(root, false, &mut names);
    names.sort_by_key(|found: &NameUse| found.range.start);
    names
}

fn walk(node: &Node, optional: bool, names: &mut Vec<NameUse>) {
    let mut inner = |node: &Node| walk(node, false, names);
    match &node.kind {
        Kind::Name(name) => names.push(NameUse { name: name.clone(), range: node.range.clone(), optional }),
        Kind::Constant(_) => {}
        Kind::Not(of) | Kind::Negate(of) => inner(of),
        Kind::And(left, right) | Kind::Or(left, right) | Kind::Operation(_, left, right) => {
            inner(left);
            inner(right);
        }
        Kind::Chain(first, rest) => {
            inner(first);
            rest.iter().for_each(|(_, node)| inner(node));
        }
        Kind::Choice { test, yes, no } => {
            inner(yes);
            inner(test);
            no.iter().for_each(|no| inner(no));
        }
        Kind::Filter(name, on, arguments) => {
            walk(on, stands_in(name), names);
            walk_arguments(arguments, names);
        }
        Kind::Test(name, on, arguments) => {
            walk(on, asks(name), names);
            walk_arguments(arguments, names);
        }
        Kind::Attribute(of, _) => walk(of, optional, names),
        Kind::Item(of, key) => {
            inner(key);
            walk(of, optional, names);
        }
        Kind::Slice { of, start, stop, step: _ } => {
            inner(of);
            start.iter().chain(stop).for_each(|part| inner(part));
        }
        Kind::Call(_, arguments) => walk_arguments(arguments, names),
        Kind::List(items) => items.iter().for_each(inner),
        Kind::Map(pairs) => pairs.iter().for_each(|(key, value)| {
            inner(key);
            inner(value);
        }),
    }
}

fn walk_arguments(arguments: &[Argument], names: &mut Vec<NameUse>) {
    for argument in arguments {
        let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
        walk(node, false, names);
    }
}

/// Whether a filter takes the place of what is not there.
pub fn stands_in(filter: &str) -> bool {
    matches!(filter, "default" | "d")
}

/// Whether a test only asks whether something is there.
pub fn asks(test: &str) -> bool {
    matches!(test, "defined" | "undefined")
}
