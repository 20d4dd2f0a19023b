//! Finds nodes that aliases share: changing one of them would change every place that refers to it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, YamlNode};

/// Makes a fix unsure if it edits the target of an alias: it would fix one field and change the meaning of another one. `root`
/// is the root of the document in `file`.
pub fn mark_shared_fixes_unsure(file: &Arc<SourceFile>, root: &YamlNode, diagnostics: &mut [Diagnostic]) {
    let sure = |diagnostic: &Diagnostic| diagnostic.fixes.iter().any(|fix| fix.sure);
    // Without an asterisk there is no alias.
    if !file.text().contains('*') || !diagnostics.iter().any(sure) {
        return;
    }
    let mut walk = Walk { seen: HashSet::new(), shared: Vec::new() };
    walk.node(root);
    let mut shared = walk.shared;
    shared.sort_unstable();
    shared.dedup();
    // Nodes are disjoint or nested: nested ones are dropped, so that only the last one before a position can contain it.
    let mut outer: Vec<Span> = Vec::with_capacity(shared.len());
    for span in shared {
        if outer.last().is_none_or(|last| last.end < span.end) {
            outer.push(span);
        }
    }
    let touches = |span: Span| {
        let before = outer.partition_point(|other| other.start <= span.end);
        before.checked_sub(1).and_then(|last| outer.get(last)).is_some_and(|other| other.end >= span.start)
    };
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| Arc::ptr_eq(&diagnostic.file, file)) {
        for fix in diagnostic.fixes.iter_mut().filter(|fix| fix.sure) {
            fix.sure = !fix.edits.iter().any(|edit| touches(edit.span));
        }
    }
}

struct Walk {
    seen: HashSet<*const YamlNode>,
    shared: Vec<Span>,
}

impl Walk {
    fn node(&mut self, node: &YamlNode) {
        match &node.kind {
            NodeKind::Scalar(_) => {}
            NodeKind::Sequence(items) => items.iter().for_each(|item| self.child(item)),
            NodeKind::Mapping(entries) => entries.iter().for_each(|entry| self.child(&entry.value)),
        }
    }

    fn child(&mut self, node: &Arc<YamlNode>) {
        if self.seen.insert(Arc::as_ptr(node)) {
            self.node(node);
        } else {
            self.shared.push(node.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::compose::parse;

    #[test]
    fn fixes_of_shared_nodes_are_not_sure() {
        // The text, what a fix would replace, and whether it stays sure.
        for (text, old, sure) in [
            ("a: &b old\nc: *b\n", "old", false),
            ("a: &b old\nc: x\n", "old", true),
            ("a: &b x\nc: *b\nd: old\n", "old", true),
            ("a: &b { c: [old] }\nd: *b\n", "old", false),
            ("a: &b { old: x }\nd: [*b]\n", "old", false),
            ("a: &b { c: &d x, e: *d }\nf: { old: y, g: *b }\n", "old", true),
            ("a: '*b'\nc: old\n", "old", true),
        ] {
            let file = Arc::new(SourceFile::new("a.yaml", text));
            let at = text.find(old).unwrap();
            let found = Diagnostic::error("x", "", &file, Span::new(at, at + old.len()));
            let mut found = [found.with_sure_replacement(Some("new"))];
            mark_shared_fixes_unsure(&file, &parse(&file).root.unwrap(), &mut found);
            assert_eq!(found[0].fixes[0].sure, sure, "{text}");
        }
    }
}
