//! Which names a template really writes or uses, through everything that it extends, includes and imports: a block that
//! a child replaced without `super()` does not count, nor does what a child writes outside of its blocks.

use std::collections::{BTreeMap, HashSet};

use crate::prompt::uses::{Place, Pull, Uses};

/// The templates that know each other.
pub trait Library {
    /// What the template with this number uses.
    fn uses(&self, template: usize) -> &Uses;
    /// The template with this name.
    fn find(&self, name: &str) -> Option<usize>;
}

/// The names that rendering `template` may look up. Names of templates that are computed (`{% include x %}`) are not
/// followed.
///
/// `true` stands with those that must be known, `false` with those that the template does without.
pub fn mentioned(library: &impl Library, template: usize) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    collect(library, template, &mut HashSet::new(), &mut found);
    found
}

fn collect(library: &impl Library, template: usize, seen: &mut HashSet<usize>, found: &mut BTreeMap<String, bool>) {
    if !seen.insert(template) {
        return;
    }
    let chain = chain(library, template);
    for (position, member) in chain.iter().enumerate() {
        let uses = library.uses(*member);
        let counts = |place: &Place| {
            let in_blocks = place.blocks.iter().all(|block| is_active(library, &chain, position, *block));
            let outside = !place.blocks.is_empty() || position + 1 == chain.len() || !place.written;
            in_blocks && outside
        };
        for (used, place) in uses.names.iter().zip(&uses.places) {
            if counts(place) {
                *found.entry(used.name.clone()).or_insert(false) |= !used.optional;
            }
        }
        for target in uses.targets.iter().filter(|target| target.pull != Pull::Extends && counts(&target.place)) {
            if let Some(next) = target.name.as_deref().and_then(|name| library.find(name)) {
                collect(library, next, seen, found);
            }
        }
    }
}

/// The template, what it extends, what that extends, …
fn chain(library: &impl Library, template: usize) -> Vec<usize> {
    let mut chain = vec![template];
    let mut last = template;
    while let Some(parent) = library
        .uses(last)
        .targets
        .iter()
        .find(|target| target.pull == Pull::Extends)
        .and_then(|target| library.find(target.name.as_deref()?))
        .filter(|parent| !chain.contains(parent))
    {
        chain.push(parent);
        last = parent;
    }
    chain
}

/// Whether a block of the template at `position` is written: every nearer template that has it calls `super()`.
fn is_active(library: &impl Library, chain: &[usize], position: usize, block: usize) -> bool {
    let Some(member) = chain.get(position) else { return false };
    let Some(block) = library.uses(*member).blocks.get(block) else { return false };
    chain
        .iter()
        .take(position)
        .all(|nearer| library.uses(*nearer).blocks.iter().all(|other| other.name != block.name || other.calls_super))
}
