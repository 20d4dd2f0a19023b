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

/// The place of the first hash that is not less than `hash`. As hashes are evenly distributed, it is near the place that the value says:
/// a binary search of the whole list would read memory at many more places.
fn lower_bound(hashes: &[u64], hash: u64) -> usize {
    let length = hashes.len();
    let expected = ((u128::from(hash) * length as u128) >> 64) as usize;
    let (mut low, mut high) = (expected, expected);
    let mut width = 64;
    while low > 0 && hashes.get(low).is_none_or(|found| *found >= hash) {
        low = low.saturating_sub(width);
        width *= 4;
    }
    width = 64;
    while high < length && hashes.get(high).is_some_and(|found| *found < hash) {
        high = (high + width).min(length);
        width *= 4;
    }
    low + hashes.get(low..high).unwrap_or_default().partition_point(|found| *found < hash)
}

/// The number for no attributes.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Subjects, predicates and objects as they are written.
    pub names: TextTable,
    /// The number of words of each name, at most 255.
    pub lengths: Vec<u8>,
    /// The hashes of normalised names in order, and the name of each.
    pub normals: Vec<u64>,
    pub by_normal: Vec<u32>,
    /// The place of each name in `normals`.
    pub normal_places: Vec<u32>,
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
        let start = lower_bound(&self.normals, normal);
        let count = self.normals.iter().skip(start).take_while(|hash| **hash == normal).count();
        self.by_normal.get(start..start + count).unwrap_or_default()
    }

    /// The number of the word with this hash.
    pub(crate) fn token(&self, hash: u64) -> Option<usize> {
        let place = lower_bound(&self.tokens, hash);
        (self.tokens.get(place) == Some(&hash)).then_some(place)
    }

    pub(crate) fn normal(&self, name: u32) -> Option<u64> {
        self.normals.get(*self.normal_places.get(name as usize)? as usize).copied()
    }

    /// The attributes of a triple as JSON.
    pub(crate) fn attributes(&self, triple: u32) -> Option<&str> {
        let number = self.attribute_numbers.get(triple as usize).filter(|number| **number != NONE)?;
        self.attributes.get(*number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hash_is_found_whatever_the_distribution(mut hashes in prop::collection::vec(prop_oneof![any::<u64>(), 0..50_u64], 0..400), hash in prop_oneof![any::<u64>(), 0..50_u64]) {
            hashes.sort_unstable();
            prop_assert_eq!(lower_bound(&hashes, hash), hashes.partition_point(|found| *found < hash));
            for known in &hashes {
                prop_assert_eq!(lower_bound(&hashes, *known), hashes.partition_point(|found| found < known));
            }
        }
    }
}
