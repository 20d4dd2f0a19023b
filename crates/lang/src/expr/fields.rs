//! Which fields of a value an expression asks for.

use std::ops::Range;

use crate::expr::tree::{ExprKind, ExprNode};

/// The fields of the name `object` that an expression asks for, each with the place of the whole `object.field`.
pub fn fields_of<'n>(object: &str, node: &'n ExprNode) -> Vec<(&'n str, Range<usize>)> {
    let mut found = Vec::new();
    asks(object, node, &mut found);
    found
}

fn asks<'n>(object: &str, node: &'n ExprNode, found: &mut Vec<(&'n str, Range<usize>)>) {
    let is_it = |of: &ExprNode| matches!(&of.kind, ExprKind::Name(name) if name == object);
    match &node.kind {
        ExprKind::Attribute(of, name) if is_it(of) => found.push((name, node.range.clone())),
        ExprKind::Item(of, key) if is_it(of) => {
            if let ExprKind::Constant(key) = &key.kind {
                found.extend(key.as_str().map(|name| (name, node.range.clone())));
            }
        }
        _ => node.each_part(&mut |part| asks(object, part, found)),
    }
}
