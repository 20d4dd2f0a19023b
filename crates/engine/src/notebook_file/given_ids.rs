//! The ids of the cells with which a session begins, apart from those that its script gives to new cells.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bcc_lang::source::compose::parse;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_runtime::notebook::action::reader::is_cell_id;
use bcc_runtime::notebook::cell::Cell;

use crate::notebook_file::read::free_id;
use crate::pin::Pinned;

/// Gives other ids to cells that have one which the script or a skill of it gives to a new cell (`store_id`): `given-c1` instead of `c1`.
/// An `exec` of that id would otherwise run the code of the notebook, and not that of the script.
pub(crate) fn renamed(mut cells: Vec<Cell>, pinned: &Pinned) -> Vec<Cell> {
    // Most sessions begin without cells, and need not read their script again.
    if cells.is_empty() {
        return cells;
    }
    let mut new = BTreeSet::new();
    for file in std::iter::once(&pinned.script).chain(&pinned.skills) {
        parse(file).root.iter().for_each(|root| collect(root, &mut new));
    }
    let mut taken: HashSet<String> = cells.iter().map(|cell| cell.id.clone()).chain(new.iter().cloned()).collect();
    for (cell, number) in cells.iter_mut().zip(1..) {
        if !new.contains(&cell.id) {
            continue;
        }
        let mut id = format!("given-{}", cell.id);
        while taken.contains(&id) {
            id.insert_str(0, "given-");
        }
        if !is_cell_id(&id) {
            id = free_id(number, &taken);
        }
        taken.insert(id.clone());
        cell.id = id;
    }
    cells
}

/// The ids in all `store_id` below a node.
fn collect(node: &Arc<YamlNode>, ids: &mut BTreeSet<String>) {
    match &node.kind {
        NodeKind::Scalar(_) => {}
        NodeKind::Sequence(items) => items.iter().for_each(|item| collect(item, ids)),
        NodeKind::Mapping(entries) => {
            for entry in entries {
                let id = entry.value.as_scalar().filter(|_| entry.key.value == "store_id");
                ids.extend(id.map(|id| id.text.clone()));
                collect(&entry.value, ids);
            }
        }
    }
}
