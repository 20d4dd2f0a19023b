//! Which names a template really writes or uses, through everything that it extends, includes and imports: a block that
//! a child replaced without `super()` does not count, nor does what a child writes outside of its blocks.

use std::collections::{BTreeMap, HashSet};

use crate::template::uses::{NameUse, Pull, UsePlace, Uses};

/// The templates that know each other.
pub trait TemplateLibrary {
    fn uses(&self, template: usize) -> &Uses;
    fn find(&self, name: &str) -> Option<usize>;
}

/// The names that rendering `template` may look up. Names of templates that are computed (`{% include x %}`) are not
/// followed.
///
/// `true` stands with those that must be known, `false` with those that the template does without.
pub fn mentioned(library: &impl TemplateLibrary, template: usize) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    collect(library, template, &mut HashSet::new(), &mut found);
    found
}

fn collect(
    library: &impl TemplateLibrary,
    template: usize,
    seen: &mut HashSet<usize>,
    found: &mut BTreeMap<String, bool>,
) {
    visit(library, template, seen, &mut |member| {
        for (_, used) in member.names() {
            *found.entry(used.name.clone()).or_insert(false) |= !used.optional;
        }
    });
}

/// A template as a part of the prompt of another: which of its blocks are written there.
pub struct Member<'a, L> {
    pub template: usize,
    library: &'a L,
    chain: &'a [usize],
    position: usize,
}

impl<'a, L: TemplateLibrary> Member<'a, L> {
    /// Whether nothing stands behind it: what it writes outside of its blocks counts.
    pub fn is_base(&self) -> bool {
        self.position + 1 == self.chain.len()
    }

    /// Whether one of its blocks is written: every nearer template that has it calls `super()`.
    pub fn writes(&self, block: usize) -> bool {
        is_active(self.library, self.chain, self.position, block)
    }

    /// Whether what stands at `place` is written or used.
    pub fn counts(&self, place: &UsePlace) -> bool {
        place.blocks.iter().all(|block| self.writes(*block))
            && (!place.blocks.is_empty() || self.is_base() || !place.written)
    }

    /// The uses of names that count, with their numbers in [`Uses::names`].
    pub fn names(&self) -> impl Iterator<Item = (usize, &'a NameUse)> {
        let uses = self.library.uses(self.template);
        uses.names
            .iter()
            .zip(&uses.places)
            .enumerate()
            .filter_map(|(number, (used, place))| self.counts(place).then_some((number, used)))
    }
}

/// Calls `see` with every template that becomes part of the prompt of `template`, itself first.
pub fn visit<L: TemplateLibrary>(
    library: &L,
    template: usize,
    seen: &mut HashSet<usize>,
    see: &mut impl FnMut(&Member<'_, L>),
) {
    if !seen.insert(template) {
        return;
    }
    let chain = chain(library, template);
    for (position, number) in chain.iter().enumerate() {
        let member = Member { template: *number, library, chain: &chain, position };
        see(&member);
        let uses = library.uses(*number);
        for target in uses.targets.iter().filter(|target| target.pull != Pull::Extends && member.counts(&target.place))
        {
            if let Some(next) = target.name.as_deref().and_then(|name| library.find(name)) {
                visit(library, next, seen, see);
            }
        }
    }
}

/// The template, what it extends, what that extends, …
fn chain(library: &impl TemplateLibrary, template: usize) -> Vec<usize> {
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
fn is_active(library: &impl TemplateLibrary, chain: &[usize], position: usize, block: usize) -> bool {
    let Some(member) = chain.get(position) else { return false };
    let Some(block) = library.uses(*member).blocks.get(block) else { return false };
    chain
        .iter()
        .take(position)
        .all(|nearer| library.uses(*nearer).blocks.iter().all(|other| other.name != block.name || other.calls_super))
}
