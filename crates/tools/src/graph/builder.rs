//! Makes the index of a chunk.

use std::collections::HashMap;

use crate::graph::chunks::SourceChunk;
use crate::graph::problem::LineProblem;
use crate::graph::segment::{ListTable, NONE, Segment, TextTable};
use crate::graph::tokens::{atoms, indexed_tokens, name_hash};

/// The number of problems of a chunk that are kept; all are counted.
const MAX_PROBLEMS: usize = 20;

/// Texts by number: the same text has the same number.
#[derive(Default)]
struct Interner {
    numbers: HashMap<String, u32>,
    table: TextTable,
}

impl Interner {
    /// The number of a text; none if there are too many.
    fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        let number = u32::try_from(self.table.ends.len()).ok().filter(|number| *number != NONE)?;
        let end = u32::try_from(self.table.text.len() + text.len()).ok()?;
        self.table.text.push_str(text);
        self.table.ends.push(end);
        self.numbers.insert(text.to_owned(), number);
        Some(number)
    }
}

/// The index of a chunk. Its records are read, and what is wrong with them is noted.
pub(crate) fn segment(chunk: &SourceChunk) -> Segment {
    let (mut names, mut attributes) = (Interner::default(), Interner::default());
    let mut segment = Segment::default();
    for (line, content) in chunk.records() {
        let triple = content.and_then(|record| chunk.columns.triple(chunk.form, record)).and_then(|triple| {
            let mut number = |name: &str| names.number(name).ok_or(LineProblem::TooLong);
            let parts = [number(&triple.subject)?, number(&triple.predicate)?, number(&triple.object)?];
            let more = triple.attributes.map(|json| attributes.number(&json).ok_or(LineProblem::TooLong));
            Ok((parts, more.transpose()?.unwrap_or(NONE)))
        });
        match triple {
            Ok((parts, more)) => {
                segment.triples.push(parts);
                segment.lines.push(line);
                segment.attribute_numbers.push(more);
            }
            Err(problem) => {
                segment.problem_count = segment.problem_count.saturating_add(1);
                if segment.problems.len() < MAX_PROBLEMS {
                    segment.problems.push([line, problem.code()]);
                }
            }
        }
    }
    if attributes.table.ends.is_empty() {
        segment.attribute_numbers = vec![];
    }
    segment.names = names.table;
    segment.attributes = attributes.table;
    add_edges(&mut segment);
    add_words(&mut segment);
    segment
}

/// The list of lists with these pairs of a list and an item, which are in order.
fn list_table(count: usize, pairs: impl Iterator<Item = (usize, u32)>) -> ListTable {
    let mut table = ListTable { ends: Vec::with_capacity(count), items: vec![] };
    for (list, item) in pairs {
        let end = u32::try_from(table.items.len()).unwrap_or(u32::MAX);
        table.ends.resize(list.max(table.ends.len()), end);
        table.items.push(item);
    }
    table.ends.resize(count, u32::try_from(table.items.len()).unwrap_or(u32::MAX));
    table.items.shrink_to_fit();
    table
}

fn add_edges(segment: &mut Segment) {
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(2 * segment.triples.len());
    for (number, [subject, _, object]) in (0..).zip(&segment.triples) {
        pairs.push((*subject, number));
        if object != subject {
            pairs.push((*object, number));
        }
    }
    pairs.sort_unstable();
    segment.edges =
        list_table(segment.names.ends.len(), pairs.into_iter().map(|(name, triple)| (name as usize, triple)));
}

fn add_words(segment: &mut Segment) {
    let mut pairs: Vec<(u64, u32)> = Vec::new();
    let mut normals: Vec<(u64, u32)> = Vec::new();
    for name in (0..).take(segment.names.ends.len()) {
        let text = segment.names.get(name).unwrap_or_default();
        let atoms = atoms(text);
        let tokens = indexed_tokens(&atoms);
        normals.push((name_hash(text, &atoms), name));
        segment.lengths.push(u8::try_from(atoms.len()).unwrap_or(u8::MAX));
        pairs.extend(tokens.into_iter().map(|token| (token, name)));
    }
    normals.sort_unstable();
    segment.normal_places = vec![0; normals.len()];
    for (place, (normal, name)) in (0..).zip(normals) {
        segment.normals.push(normal);
        segment.by_normal.push(name);
        if let Some(known) = segment.normal_places.get_mut(name as usize) {
            *known = place;
        }
    }
    pairs.sort_unstable();
    // How many triples each name is a part of.
    let mut degrees = vec![0_u32; segment.names.ends.len()];
    for name in segment.triples.iter().flatten() {
        if let Some(degree) = degrees.get_mut(*name as usize) {
            *degree = degree.saturating_add(1);
        }
    }
    for (token, name) in &pairs {
        if segment.tokens.last() != Some(token) {
            segment.tokens.push(*token);
            segment.token_triples.push(0);
        }
        if let Some(count) = segment.token_triples.last_mut() {
            *count = count.saturating_add(degrees.get(*name as usize).copied().unwrap_or(0));
        }
    }
    let mut list = 0;
    let mut last = None;
    let numbered = pairs.iter().map(|(token, name)| {
        if last.is_some_and(|last| last != *token) {
            list += 1;
        }
        last = Some(*token);
        (list, *name)
    });
    segment.postings = list_table(segment.tokens.len(), numbered);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::chunks::{ChunkSizes, each_chunk};
    use crate::graph::columns::SourceForm;
    use crate::graph::tokens::query_tokens;

    pub(crate) fn of(text: &str) -> Segment {
        let mut found = Segment::default();
        each_chunk(text.as_bytes(), SourceForm::Csv, ChunkSizes::default(), |chunk| {
            found = segment(&chunk);
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn names_words_and_edges_refer_to_each_other() {
        let segment = of("T4 phage,binds,LPS\nT7 phage,binds,LPS,doi:1\nbad line\nLPS,binds,LPS\n");
        assert_eq!(segment.triples, [[0, 1, 2], [3, 1, 2], [2, 1, 2]]);
        assert_eq!((segment.names.get(3), segment.names.get(4)), (Some("T7 phage"), None));
        assert_eq!((segment.lines.as_slice(), segment.problems.as_slice()), (&[0, 1, 3][..], &[[2, 4]][..]));
        assert_eq!((segment.edges.list(0), segment.edges.list(2)), (&[0][..], &[0, 1, 2][..]));
        assert_eq!((segment.attributes(0), segment.attributes(1)), (None, Some("{\"source\":\"doi:1\"}")));
        let token = |word: &str| segment.token(query_tokens(&atoms(word))[0]).unwrap();
        assert_eq!(segment.postings.list(token("phages")), [0, 3]);
        assert_eq!((segment.token_triples[token("phage")], segment.token_triples[token("binds")]), (2, 3));
        let normal = |name: &str| name_hash(name, &atoms(name));
        assert_eq!((segment.named(normal("t7 Phages")), segment.named(normal("T8"))), (&[3][..], &[][..]));
    }

    #[test]
    fn many_problems_are_counted_and_few_are_kept() {
        let segment = of(&"bad\n".repeat(1000));
        assert_eq!((segment.problems.len(), segment.problem_count, segment.triples.len()), (MAX_PROBLEMS, 1000, 0));
    }
}
