//! The index of one chunk of a source: its triples, names, words and edges, as lists of numbers. Names are stored once and referred to by
//! number. Nothing in it is trusted: a number that is out of range finds nothing.

/// A list of lists: the lists follow each other in `items`, and `ends` has the end of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListTable {
    pub ends: Vec<u32>,
    pub items: Vec<u32>,
}

fn range(ends: &[u32], number: usize) -> Option<std::ops::Range<usize>> {
    let start = number.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
    Some(start as usize..*ends.get(number)? as usize)
}

impl ListTable {
    pub(crate) fn list(&self, number: usize) -> &[u32] {
        range(&self.ends, number).and_then(|range| self.items.get(range)).unwrap_or_default()
    }
}

/// Texts that follow each other, with the end of each in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextTable {
    pub text: String,
    pub ends: Vec<u32>,
}

impl TextTable {
    pub(crate) fn get(&self, number: u32) -> Option<&str> {
        self.text.get(range(&self.ends, number as usize)?)
    }
}

/// The number for no attributes.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Subjects, predicates and objects as they are written.
    pub names: TextTable,
    /// The number of words of each name, at most 255.
    pub lengths: Vec<u8>,
    /// The hash of each normalised name.
    pub normals: Vec<u64>,
    /// The names in the order of their hashes.
    pub by_normal: Vec<u32>,
    /// The hashes of all words in order, each with the number of triples that contain it.
    pub tokens: Vec<u64>,
    pub token_triples: Vec<u32>,
    /// The names with each word.
    pub postings: ListTable,
    /// The numbers of the subject, the predicate and the object of each triple.
    pub triples: Vec<[u32; 3]>,
    /// The line of each triple, relative to the first one of the chunk.
    pub lines: Vec<u32>,
    /// The number of the attributes of each triple, or [`NONE`]; empty if no triple has any.
    pub attribute_numbers: Vec<u32>,
    pub attributes: TextTable,
    /// The triples of which each name is the subject or the object.
    pub edges: ListTable,
    /// Lines with problems, and their codes.
    pub problems: Vec<[u32; 2]>,
    /// The number of all lines with problems.
    pub problem_count: u32,
}

impl Segment {
    /// The names with this hash of their normalised form.
    pub(crate) fn named(&self, normal: u64) -> &[u32] {
        let hash = |name: &u32| self.normals.get(*name as usize).copied().unwrap_or(u64::MAX);
        let start = self.by_normal.partition_point(|name| hash(name) < normal);
        let end = self.by_normal.partition_point(|name| hash(name) <= normal);
        self.by_normal.get(start..end).unwrap_or_default()
    }

    /// The number of the word with this hash.
    pub(crate) fn token(&self, hash: u64) -> Option<usize> {
        self.tokens.binary_search(&hash).ok()
    }

    pub(crate) fn normal(&self, name: u32) -> Option<u64> {
        self.normals.get(name as usize).copied()
    }

    /// The attributes of a triple as JSON.
    pub(crate) fn attributes(&self, triple: u32) -> Option<&str> {
        let number = self.attribute_numbers.get(triple as usize).filter(|number| **number != NONE)?;
        self.attributes.get(*number)
    }
}
