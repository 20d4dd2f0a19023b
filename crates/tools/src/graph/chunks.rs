//! Divides the records of a source into chunks, each of which is indexed on its own. Where a chunk ends depends on the records around
//! its end only: a line that is inserted, changed or removed changes its chunk, and the chunks before and after it stay as they are.

use std::io::{self, BufRead};

use sha2::{Digest, Sha256};

use crate::graph::columns::{SourceColumns, SourceForm};
use crate::graph::problem::LineProblem;
use crate::graph::records::{SourceRecord, SourceRecords};
use crate::graph::tokens::StableHash;

/// The sizes of chunks, in records and bytes. A record ends a chunk of at least `min_records` if `mask` bits of its hash are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSizes {
    pub min_records: usize,
    pub max_records: usize,
    pub max_bytes: usize,
    pub mask: u64,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { min_records: 16 * 1024, max_records: 64 * 1024, max_bytes: 16 * 1024 * 1024, mask: 16 * 1024 - 1 }
    }
}

/// A part of a source: its records, and the columns for all of them.
#[derive(Debug)]
pub(crate) struct SourceChunk {
    /// The number of its first line in the source; the lines of its records are relative to it.
    pub first_line: u32,
    pub form: SourceForm,
    pub columns: SourceColumns,
    bytes: Vec<u8>,
    records: Vec<(u32, Result<usize, LineProblem>)>,
}

impl SourceChunk {
    fn new(first_line: u32, form: SourceForm, columns: SourceColumns) -> Self {
        Self { first_line, form, columns, bytes: vec![], records: vec![] }
    }

    fn push(&mut self, record: SourceRecord) {
        let line = record.line.saturating_sub(self.first_line);
        let content = record.content.map(|bytes| {
            self.bytes.extend_from_slice(&bytes);
            self.bytes.len()
        });
        self.records.push((line, content));
    }

    /// The records, each with its line relative to that of the chunk.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u32, Result<&[u8], LineProblem>)> {
        let mut start = 0;
        self.records.iter().map(move |(line, content)| {
            let content = content.map(|end| {
                let record = self.bytes.get(start..end).unwrap_or_default();
                start = end;
                record
            });
            (*line, content)
        })
    }

    /// The name under which the index of the chunk is stored: two chunks of the same content have the same.
    pub(crate) fn name(&self, version: u32) -> String {
        let mut hash = Sha256::new();
        hash.update(version.to_le_bytes());
        hash.update(format!("{:?}\0{}\0", self.form, self.columns.key()));
        for (line, content) in self.records() {
            hash.update(line.to_le_bytes());
            match content {
                Ok(bytes) => {
                    hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
                    hash.update(bytes);
                }
                Err(problem) => hash.update([0xff, problem.code().to_le_bytes()[0]]),
            }
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Passes the chunks of a source to `found` one after the other, until it returns an error.
pub(crate) fn each_chunk(
    reader: impl BufRead,
    form: SourceForm,
    sizes: ChunkSizes,
    mut found: impl FnMut(SourceChunk) -> io::Result<()>,
) -> io::Result<()> {
    let mut records = SourceRecords::new(reader, form);
    let mut columns = SourceColumns::default();
    let mut chunk: Option<SourceChunk> = None;
    let mut is_first = true;
    while let Some(record) = records.next_record()? {
        let header =
            record.content.as_ref().ok().filter(|_| is_first).and_then(|bytes| SourceColumns::of_header(form, bytes));
        is_first = false;
        if let Some(header) = header {
            columns = header;
            continue;
        }
        let ends = record.content.as_ref().is_ok_and(|bytes| StableHash::new().add(bytes).mixed() & sizes.mask == 0);
        let current = chunk.get_or_insert_with(|| SourceChunk::new(record.line, form, columns.clone()));
        current.push(record);
        let count = current.records.len();
        if (count >= sizes.min_records && ends) || count >= sizes.max_records || current.bytes.len() >= sizes.max_bytes
        {
            chunk.take().map_or(Ok(()), &mut found)?;
        }
    }
    chunk.map_or(Ok(()), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: ChunkSizes = ChunkSizes { min_records: 8, max_records: 64, max_bytes: 1_000_000, mask: 15 };

    fn names(text: &str) -> Vec<(u32, String)> {
        let mut names = Vec::new();
        each_chunk(text.as_bytes(), SourceForm::Csv, SMALL, |chunk| {
            names.push((chunk.first_line, chunk.name(1)));
            Ok(())
        })
        .unwrap();
        names
    }

    fn lines(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("entity {number},is,thing {}", number % 7)).collect()
    }

    #[test]
    fn a_changed_line_changes_few_chunks() {
        let before = lines(2000);
        let old: Vec<String> = names(&before.join("\n")).into_iter().map(|(_, name)| name).collect();
        assert!(old.len() > 50, "{}", old.len());
        for edit in [0, 999, 1999] {
            let mut after = before.clone();
            after.insert(edit, "a new entity,is,thing".to_owned());
            after.remove(edit + 1);
            after.insert(edit, "another,is,thing".to_owned());
            let new = names(&after.join("\n"));
            let changed = new.iter().filter(|(_, name)| !old.contains(name)).count();
            assert!((1..=6).contains(&changed), "{changed} of {} at {edit}", new.len());
        }
    }

    #[test]
    fn the_first_lines_and_the_columns_are_known() {
        let text = format!("relation,subject,object\n{}", lines(100).join("\n"));
        let found = names(&text);
        assert_eq!(found[0].0, 2);
        assert_ne!(found[0].1, names(&lines(100).join("\n"))[0].1, "other columns are another content");
        let mut last = 0;
        each_chunk(text.as_bytes(), SourceForm::Csv, SMALL, |chunk| {
            let lines: Vec<u32> = chunk.records().map(|(line, _)| chunk.first_line + line).collect();
            assert_eq!(lines[0], last.max(1) + 1);
            last = *lines.last().unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(last, 101);
    }
}
