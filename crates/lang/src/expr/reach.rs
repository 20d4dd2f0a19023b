//! The names that an expression uses, in the order in which they stand in it.

use crate::expr::tree::{ExprKind, ExprNode};
use crate::template::uses::NameUse;

/// The names under `root`. A name that is only asked for (`is defined`) or has a stand-in (`| default`), by itself or at
/// the root of `a.b.c`, is optional.
pub fn free_names(root: &ExprNode) -> Vec<NameUse> {
    let mut names = Vec::new();
    walk(root, false, &mut names);
    names.sort_by_key(|found: &NameUse| found.range.start);
    names
}

fn walk(node: &ExprNode, optional: bool, names: &mut Vec<NameUse>) {
    if let ExprKind::Name(name) = &node.kind {
        names.push(NameUse { name: name.clone(), range: node.range.clone(), optional });
    }
    // Whether the first part need not be there.
    let mut first = match &node.kind {
        ExprKind::Filter(name, ..) => stands_in(name),
        ExprKind::Test(name, ..) => asks(name),
        ExprKind::Attribute(..) | ExprKind::Item(..) => optional,
        _ => false,
    };
    node.each_part(&mut |part| walk(part, std::mem::take(&mut first), names));
}

/// Whether a filter takes the place of what is not there.
pub fn stands_in(filter: &str) -> bool {
    matches!(filter, "default" | "d")
}

/// Whether a test only asks whether something is there.
pub fn asks(test: &str) -> bool {
    matches!(test, "defined" | "undefined")
}
