//! The children of one task in their order, so that a position is found quickly among very many.

use crate::plan::task::TaskId;

/// The distance of ranks when tasks are added at an end. Between two neighbours, about 24 tasks can be inserted at one place before
/// ranks have to change.
const GAP: i64 = 1 << 24;

/// The minimum distance after ranks were changed, for each sibling whose rank changes: what many insertions at one place made dense
/// is spread over more and more siblings, so that each of them changes rarely.
const GAP_PER_SIBLING: i128 = 8;

/// The maximum length of a chunk.
const MAX_CHUNK: usize = 512;

/// A rank and the task that has it: siblings are ordered by both.
type Entry = (i64, TaskId);

/// Siblings in their order, in chunks. The rank of each is given by the owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiblingList {
    /// None is empty.
    chunks: Vec<Vec<Entry>>,
    length: usize,
}

impl PartialEq for SiblingList {
    fn eq(&self, other: &Self) -> bool {
        self.length == other.length && self.entries().eq(other.entries())
    }
}

impl SiblingList {
    /// The list of these entries, which need not be sorted.
    #[cfg(test)]
    pub(crate) fn from_entries(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable();
        let length = entries.len();
        Self { chunks: entries.chunks(MAX_CHUNK / 2).map(<[Entry]>::to_vec).collect(), length }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = Entry> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The index of the chunk where an entry is, or belongs.
    fn chunk_of(&self, entry: Entry) -> usize {
        self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| *first <= entry)).saturating_sub(1)
    }

    pub(crate) fn insert(&mut self, rank: i64, id: TaskId) {
        let entry = (rank, id);
        let index = self.chunk_of(entry);
        let Some(chunk) = self.chunks.get_mut(index) else {
            self.chunks.push(vec![entry]);
            self.length = 1;
            return;
        };
        if let Err(at) = chunk.binary_search(&entry) {
            chunk.insert(at, entry);
            self.length = self.length.saturating_add(1);
            if chunk.len() > MAX_CHUNK {
                let rest = chunk.split_off(MAX_CHUNK / 2);
                self.chunks.insert(index.saturating_add(1), rest);
            }
        }
    }

    pub(crate) fn remove(&mut self, rank: i64, id: TaskId) {
        let entry = (rank, id);
        let index = self.chunk_of(entry);
        let Some(chunk) = self.chunks.get_mut(index) else { return };
        let Ok(at) = chunk.binary_search(&entry) else { return };
        chunk.remove(at);
        self.length = self.length.saturating_sub(1);
        if chunk.is_empty() {
            self.chunks.remove(index);
        }
    }

    /// The number of siblings before this one.
    pub(crate) fn position(&self, rank: i64, id: TaskId) -> usize {
        let entry = (rank, id);
        let index = self.chunk_of(entry);
        let before: usize = self.chunks.iter().take(index).map(Vec::len).sum();
        let within = self.chunks.get(index).map_or(0, |chunk| chunk.partition_point(|other| *other < entry));
        before.saturating_add(within)
    }

    pub(crate) fn get(&self, position: usize) -> Option<Entry> {
        let mut rest = position;
        for chunk in &self.chunks {
            if let Some(entry) = chunk.get(rest) {
                return Some(*entry);
            }
            rest = rest.saturating_sub(chunk.len());
        }
        None
    }

    /// A rank for a new sibling that is to have this position; none if there is no gap, so that [`SiblingList::spread`] has to make
    /// one.
    pub(crate) fn rank_at(&self, position: usize) -> Option<i64> {
        let before = position.checked_sub(1).and_then(|before| self.get(before)).map(|(rank, _)| rank);
        let after = self.get(position).map(|(rank, _)| rank);
        match (before, after) {
            (None, None) => Some(0),
            (Some(before), None) => before.checked_add(GAP),
            (None, Some(after)) => after.checked_sub(GAP),
            (Some(before), Some(after)) => {
                let middle = i64::midpoint(before, after);
                if before < middle && middle < after { Some(middle) } else { None }
            }
        }
    }

    /// New ranks, for as few siblings as possible around this position, with gaps between all of them.
    pub(crate) fn spread(&self, position: usize) -> Vec<(TaskId, i64)> {
        let mut width = 2;
        loop {
            let first = position.saturating_sub(width / 2);
            let end = position.saturating_add(width / 2).min(self.length);
            let count = end.saturating_sub(first);
            let before = first.checked_sub(1).and_then(|before| self.get(before)).map(|(rank, _)| i128::from(rank));
            let after = self.get(end).map(|(rank, _)| i128::from(rank));
            let room = i128::from(GAP) * (count as i128 + 1);
            let (low, high) = match (before, after) {
                (Some(before), Some(after)) => (before, after),
                (Some(before), None) => (before, before + room),
                (None, Some(after)) => (after - room, after),
                (None, None) => (-room / 2, room / 2),
            };
            let step = (high - low) / (count as i128 + 1);
            let is_within = i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
            if step >= GAP_PER_SIBLING * (width as i128) && is_within || width > self.length.saturating_mul(4) {
                return (first..end)
                    .zip(1_i128..)
                    .filter_map(|(index, number)| {
                        let (_, id) = self.get(index)?;
                        Some((id, i64::try_from(low + step * number).ok()?))
                    })
                    .collect();
            }
            width = width.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts a task at a position, as a tree does, and returns how many ranks were written.
    fn insert_at(list: &mut SiblingList, position: usize, id: TaskId) -> usize {
        let mut written = 1;
        if list.rank_at(position).is_none() {
            for (id, rank) in list.spread(position) {
                let old = list.entries().find(|(_, other)| *other == id).unwrap().0;
                list.remove(old, id);
                list.insert(rank, id);
                written += 1;
            }
        }
        let rank = list.rank_at(position).unwrap();
        list.insert(rank, id);
        written
    }

    #[test]
    fn any_insertion_keeps_the_order_and_writes_few_ranks() {
        for place in [|_: usize| 0, |length: usize| length, |length: usize| length / 2, |length: usize| length.min(1)] {
            let (mut list, mut expected, mut written) = (SiblingList::default(), Vec::new(), 0);
            for id in 0..3000 {
                let position = place(expected.len());
                expected.insert(position, id);
                written += insert_at(&mut list, position, id);
            }
            assert!(list.entries().map(|(_, id)| id).eq(expected.iter().copied()));
            assert!(written < 3000 * 10, "{written}");
            for (position, id) in expected.iter().enumerate() {
                let (rank, found) = list.get(position).unwrap();
                assert_eq!((found, list.position(rank, *id)), (*id, position));
            }
            for id in expected {
                let (rank, _) = list.get(0).unwrap();
                list.remove(rank, id);
            }
            assert_eq!(list, SiblingList::default());
        }
    }

    #[test]
    fn ranks_that_are_equal_or_at_the_end_of_their_range_are_spread() {
        for ranks in [[5, 5, 5], [i64::MIN, 0, i64::MAX], [i64::MAX - 2, i64::MAX - 1, i64::MAX]] {
            for position in 0..=3 {
                let mut list = SiblingList::from_entries(ranks.into_iter().zip(1..).collect());
                insert_at(&mut list, position, 9);
                let ids: Vec<TaskId> = list.entries().map(|(_, id)| id).collect();
                let mut expected = vec![1, 2, 3];
                expected.insert(position, 9);
                assert_eq!(ids, expected, "{ranks:?} {position}");
            }
        }
    }
}
