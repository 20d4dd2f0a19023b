//! Which fields of a value an expression asks for.

use std::ops::Range;

use crate::expr::tree::{Argument, Kind, Node};

/// The fields of the name `object` that an expression asks for, each with the place of the whole `object.field`.
pub fn fields_of<'n>(object: &str, node: &'n Node) -> Vec<(&'n str, Range<usize>)> {
    let mut found = Vec::new();
    asks(object, node, &mut found);
    found
}

fn asks<'n>(object: &str, node: &'n Node, found: &mut Vec<(&'n str, Range<usize>)>) {
    let is_it = |of: &Node| matches!(&of.kind, Kind::Name(name) if name == object);
    let all = |arguments: &'n [Argument], found: &mut Vec<(&'n str, Range<usize>)>| {
        for argument in arguments {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            asks(object, node, found);
        }
    };
    match &node.kind {
        Kind::Attribute(of, name) if is_it(of) => found.push((name, node.range.clone())),
        Kind::Item(of, key) if is_it(of) => {
            if let Kind::Constant(key) = &key.kind {
                found.extend(key.as_str().map(|name| (name, node.range.clone())));
            }
        }
        Kind::Name(_) | Kind::Constant(_) => {}
        Kind::Not(of) | Kind::Negate(of) | Kind::Attribute(of, _) => asks(object, of, found),
        Kind::And(one, two) | Kind::Or(one, two) | Kind::Operation(_, one, two) | Kind::Item(one, two) => {
            asks(object, one, found);
            asks(object, two, found);
        }
        Kind::Chain(first, rest) => {
            asks(object, first, found);
            rest.iter().for_each(|(_, node)| asks(object, node, found));
        }
        Kind::Choice { test, yes, no } => {
            [Some(test), Some(yes), no.as_ref()].into_iter().flatten().for_each(|node| asks(object, node, found));
        }
        Kind::Filter(_, of, arguments) | Kind::Test(_, of, arguments) => {
            asks(object, of, found);
            all(arguments, found);
        }
        Kind::Slice { of, start, stop, .. } => {
            [Some(of), start.as_ref(), stop.as_ref()].into_iter().flatten().for_each(|node| asks(object, node, found));
        }
        Kind::Call(_, arguments) => all(arguments, found),
        Kind::List(items) => items.iter().for_each(|node| asks(object, node, found)),
        Kind::Map(entries) => entries.iter().for_each(|(key, value)| {
            asks(object, key, found);
            asks(object, value, found);
        }),
    }
}
