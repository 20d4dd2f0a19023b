//! The coverage of a test run: what exists, what ran, and the resulting figures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde_json::Value;

use crate::test_runner::coverage::count::{CoverageCounts, Tally, count};
use crate::test_runner::coverage::item::{CoverageItem, ItemKind};
use crate::test_runner::coverage::outline::{CoverageOutline, outlines};
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::program::Program;

/// The coverage of scripts and of the skills that they use, by file.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    files: BTreeMap<String, Covered>,
}

#[derive(Clone, Debug)]
pub struct Covered {
    pub outline: CoverageOutline,
    pub counts: CoverageCounts,
    /// The number of counted sessions of scripts that use this file.
    pub sessions: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    pub covered: u64,
    pub total: u64,
}

impl Figure {
    /// The share that ran, in tenths of a percent, never rounded up to 100%; `None` if the total is zero.
    pub(crate) fn permille(self) -> Option<u64> {
        (self.covered * 1000).checked_div(self.total)
    }

    /// The share in percent, as text: `66.6%`; a dash if the total is zero.
    pub fn percent(self) -> String {
        match self.permille() {
            Some(1000) => "100%".to_owned(),
            Some(permille) => format!("{}.{}%", permille / 10, permille % 10),
            None => "–".to_owned(),
        }
    }

    /// Whether it is at least this percentage. An empty total counts as covered.
    pub const fn reaches(self, percent: u64) -> bool {
        self.covered * 100 >= percent * self.total
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { covered: self.covered + other.covered, total: self.total + other.total }
    }
}

impl Coverage {
    /// Registers a program whose parts may all be uncovered.
    pub fn register(&mut self, program: &Program) {
        let files = program.skills.values().filter_map(|skill| skill.file.as_ref());
        if std::iter::once(&program.file).chain(files).all(|file| self.files.contains_key(file.name())) {
            return;
        }
        for outline in outlines(program) {
            let covered = |outline| Covered { outline, counts: CoverageCounts::default(), sessions: 0 };
            self.files.entry(outline.file.name().to_owned()).or_insert_with(|| covered(outline));
        }
    }

    /// Adds a session of a program, from the events of its complete journal.
    pub fn add(&mut self, program: &Program, events: &[Value]) {
        self.register(program);
        for (file, counts) in count(program, events) {
            if let Some(covered) = self.files.get_mut(&file) {
                covered.counts.add(&counts);
            }
        }
        let skills = program.skills.values().filter_map(|skill| skill.file.as_ref());
        for file in std::iter::once(&program.file).chain(skills) {
            if let Some(covered) = self.files.get_mut(file.name()) {
                covered.sessions += 1;
            }
        }
    }

    /// Adds the coverage of another run: the same as if all sessions had been added here.
    pub fn merge(&mut self, other: Self) {
        for (name, covered) in other.files {
            match self.files.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(covered);
                }
                Entry::Occupied(mut known) => {
                    known.get_mut().counts.add(&covered.counts);
                    known.get_mut().sessions += covered.sessions;
                }
            }
        }
    }

    pub fn files(&self) -> impl Iterator<Item = &Covered> {
        self.files.values()
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn total(&self) -> Figure {
        self.files().fold(Figure::default(), |sum, file| sum.plus(file.total()))
    }

    /// How many of the exit reasons of all actions occurred.
    pub fn endings(&self) -> Figure {
        self.files().fold(Figure::default(), |sum, file| sum.plus(file.endings()))
    }

    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Self {
        let renamed = |(old, mut covered): (String, Covered)| {
            let new = name(&old);
            covered.outline.file = Arc::new(SourceFile::new(new.clone(), covered.outline.file.text()));
            (new, covered)
        };
        Self { files: self.files.into_iter().map(renamed).collect() }
    }

    pub(crate) fn figure(&self, what: ItemKind) -> Figure {
        self.files().fold(Figure::default(), |sum, file| sum.plus(file.figure(what)))
    }
}

impl Covered {
    pub fn items(&self) -> Vec<&CoverageItem> {
        self.outline.items.iter().flat_map(CoverageItem::all).collect()
    }

    pub(crate) fn tally(&self, item: &CoverageItem) -> Tally {
        self.counts.tallies.get(&item.key).copied().unwrap_or_default()
    }

    pub fn exits(&self, action: &str, reason: &str) -> u64 {
        self.counts.exits.get(&(action.to_owned(), reason.to_owned())).copied().unwrap_or(0)
    }

    pub(crate) fn figure_of<'i>(&self, items: impl IntoIterator<Item = &'i CoverageItem>) -> Figure {
        items.into_iter().fold(Figure::default(), |sum, item| {
            sum.plus(Figure { covered: u64::from(self.tally(item).ran > 0), total: 1 })
        })
    }

    pub(crate) fn figure(&self, what: ItemKind) -> Figure {
        self.figure_of(self.items().into_iter().filter(|item| item.key.what() == what))
    }

    /// How much of what the author wrote ran.
    pub fn total(&self) -> Figure {
        self.figure_of(self.items())
    }

    /// How many of the possible exit reasons of its actions occurred. Authors do not write them, so they are counted
    /// separately from the total.
    pub fn endings(&self) -> Figure {
        let reasons = |item: &CoverageItem| {
            item.exits.iter().map(|reason| (item.key.id().to_owned(), *reason)).collect::<Vec<_>>()
        };
        self.items().into_iter().flat_map(reasons).fold(Figure::default(), |sum, (action, reason)| {
            sum.plus(Figure { covered: u64::from(self.exits(&action, reason) > 0), total: 1 })
        })
    }

    pub fn missed(&self) -> Vec<&CoverageItem> {
        self.items().into_iter().filter(|item| self.tally(item).ran == 0).collect()
    }
}
