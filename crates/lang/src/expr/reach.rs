//! Collects the names that an expression uses, in source order.

use crate::expr::tree::{ExprKind, ExprNode};
use crate::template::uses::NameUse;

/// The names under `root`. A name is optional if it, or an expression `a.b.c` of which it is the root, is only tested
/// (`is defined`) or has a default (`| default`).
pub(crate) fn free_names(root: &ExprNode) -> Vec<NameUse> {
    let mut names = Vec::new();
    walk(root, false, &mut names);
    names.sort_by_key(|found: &NameUse| found.range.start);
    names
}

fn walk(node: &ExprNode, optional: bool, names: &mut Vec<NameUse>) {
    if let ExprKind::Name(name) = &node.kind {
        names.push(NameUse { name: name.clone(), range: node.range.clone(), optional });
    }
    // Whether the first part may be undefined.
    let mut first = match &node.kind {
        ExprKind::Filter(name, ..) => is_default_filter(name),
        ExprKind::Test(name, ..) => is_defined_test(name),
        ExprKind::Attribute(..) | ExprKind::Item(..) => optional,
        _ => false,
    };
    node.each_part(&mut |part| walk(part, std::mem::take(&mut first), names));
}

/// Whether a filter replaces undefined values.
pub(crate) fn is_default_filter(filter: &str) -> bool {
    matches!(filter, "default" | "d")
}

/// Whether a test checks only for existence.
pub(crate) fn is_defined_test(test: &str) -> bool {
    matches!(test, "defined" | "undefined")
}
