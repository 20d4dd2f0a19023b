//! Finds the names that a template uses, including those of templates that it extends, includes and imports. A block that a child
//! replaces without `super()` does not count, nor does the output of a child outside its blocks.

use std::collections::{BTreeMap, HashSet};

use crate::template::uses::{NameUse, TargetKind, UsePlace, Uses};

/// Templates that can refer to each other by name.
pub trait TemplateLibrary {
    fn uses(&self, template: usize) -> &Uses;
    fn find(&self, name: &str) -> Option<usize>;
}

/// The names that rendering `template` may look up, each with whether it is required. Computed names of templates (`{% include x %}`)
/// are not followed.
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

/// A template as a part of the prompt of another template.
pub struct Member<'a, L> {
    pub template: usize,
    library: &'a L,
    chain: &'a [usize],
    position: usize,
}

impl<'a, L: TemplateLibrary> Member<'a, L> {
    /// Whether it extends no other template, so that its output outside blocks counts.
    pub(crate) fn is_base(&self) -> bool {
        self.position + 1 == self.chain.len()
    }

    /// Whether one of its blocks is rendered: every override of the block calls `super()`.
    pub fn writes(&self, block: usize) -> bool {
        is_active(self.library, self.chain, self.position, block)
    }

    /// Whether the code at `place` is rendered or evaluated.
    pub fn counts(&self, place: &UsePlace) -> bool {
        place.blocks.iter().all(|block| self.writes(*block))
            && (!place.blocks.is_empty() || self.is_base() || !place.written)
    }

    /// The uses of names that count, with their indexes in [`Uses::names`].
    pub fn names(&self) -> impl Iterator<Item = (usize, &'a NameUse)> {
        let uses = self.library.uses(self.template);
        uses.names
            .iter()
            .zip(&uses.places)
            .enumerate()
            .filter_map(|(number, (used, place))| self.counts(place).then_some((number, used)))
    }
}

/// Calls `callback` with every template that is part of the prompt of `template`, which comes first.
pub fn visit<L: TemplateLibrary>(
    library: &L,
    template: usize,
    seen: &mut HashSet<usize>,
    callback: &mut impl FnMut(&Member<'_, L>),
) {
    if !seen.insert(template) {
        return;
    }
    let chain = chain(library, template);
    for (position, number) in chain.iter().enumerate() {
        let member = Member { template: *number, library, chain: &chain, position };
        callback(&member);
        let uses = library.uses(*number);
        for target in
            uses.targets.iter().filter(|target| target.kind != TargetKind::Extends && member.counts(&target.place))
        {
            if let Some(next) = target.name.as_deref().and_then(|name| library.find(name)) {
                visit(library, next, seen, callback);
            }
        }
    }
}

/// The template and its ancestors by `extends`.
fn chain(library: &impl TemplateLibrary, template: usize) -> Vec<usize> {
    let mut chain = vec![template];
    let mut last = template;
    while let Some(parent) = library
        .uses(last)
        .targets
        .iter()
        .find(|target| target.kind == TargetKind::Extends)
        .and_then(|target| library.find(target.name.as_deref()?))
        .filter(|parent| !chain.contains(parent))
    {
        chain.push(parent);
        last = parent;
    }
    chain
}

/// Whether a block of the template at `position` is rendered: every override of the block calls `super()`.
fn is_active(library: &impl TemplateLibrary, chain: &[usize], position: usize, block: usize) -> bool {
    let Some(member) = chain.get(position) else { return false };
    let Some(block) = library.uses(*member).blocks.get(block) else { return false };
    chain
        .iter()
        .take(position)
        .all(|nearer| library.uses(*nearer).blocks.iter().all(|other| other.name != block.name || other.calls_super))
}
