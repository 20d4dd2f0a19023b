//! Finds the fields of a value that an expression uses.

use std::ops::Range;

use crate::expr::tree::{ExprKind, ExprNode};

/// The fields of the name `object` that an expression uses, each with the range of `object.field`.
pub fn fields_of<'n>(object: &str, node: &'n ExprNode) -> Vec<(&'n str, Range<usize>)> {
    let mut found = Vec::new();
    collect(object, node, &mut found);
    found
}

fn collect<'n>(object: &str, node: &'n ExprNode, found: &mut Vec<(&'n str, Range<usize>)>) {
    let is_object = |of: &ExprNode| matches!(&of.kind, ExprKind::Name(name) if name == object);
    match &node.kind {
        ExprKind::Attribute(of, name) if is_object(of) => found.push((name, node.range.clone())),
        ExprKind::Item(of, key) if is_object(of) => {
            if let ExprKind::Constant(key) = &key.kind {
                found.extend(key.as_str().map(|name| (name, node.range.clone())));
            }
        }
        _ => node.each_part(&mut |part| collect(object, part, found)),
    }
}
