//! Reads the write-ahead log of SQLite, to tell a damaged one from one whose last commit was interrupted.
//!
//! SQLite applies the log up to the first frame that is not as its checksum says, and ignores the rest: right for a commit
//! that was interrupted, and wrong if the frame was damaged after it was written, because later commits are then lost. The
//! format is described at <https://www.sqlite.org/fileformat2.html#walformat>: every frame is one page, with the salts of
//! the log and a checksum that continues the one of the frame before.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::sqlite::disk::sibling;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// The first four bytes of a log, without the last bit, which says that checksums are of big-endian numbers.
const MAGIC: u32 = 0x377f_0682;

/// The version of the log and of its index.
const VERSION: u32 = 3_007_000;

/// The smallest and the largest page of a database, in bytes.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 512..=65_536;

/// The length of the header of the index, which is stored twice, and the length of its part with a checksum.
const INDEX_HEADER_BYTES: usize = 48;
const INDEX_CHECKED_BYTES: usize = 40;

/// What is known of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameState {
    /// Its page is as it was written.
    Whole,
    /// It belongs to this log, and its page cannot be verified.
    Damaged,
    /// It was left by an earlier use of the log, or is no frame.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalFrame {
    pub(crate) page: u32,
    /// The number of pages of the database, for the last frame of a commit; otherwise 0.
    pub(crate) commit: u32,
    pub(crate) state: FrameState,
    /// The other page that a damaged frame may contain.
    pub(crate) other_page: Option<u32>,
    /// Eight bytes at this offset of its page that were changed after it was written, as they were.
    pub(crate) repair: Option<(usize, [u8; 8])>,
}

impl WalFrame {
    /// Whether a commit of this log ends with it.
    fn is_commit(&self) -> bool {
        self.commit > 0 && self.state != FrameState::Other
    }
}

/// The frames of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wal {
    pub(crate) page_bytes: usize,
    pub(crate) frames: Vec<WalFrame>,
    /// The number of frames that SQLite accepts: up to the first one that breaks the chain of checksums.
    accepted: usize,
    /// The number of frames that the index of the log names as committed; 0 if it says nothing about this log.
    indexed: usize,
}

/// What became of acknowledged commits in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalDamage {
    /// A part of it was changed after it was written: SQLite would ignore the commits after that part.
    Changed,
    /// It is shorter than its index says, or is not there.
    Short,
}

impl Wal {
    /// Reads the log of the database `file`; `None` if there is none, or it is empty.
    pub(crate) fn of(file: &Path) -> io::Result<Option<Self>> {
        let log = match File::open(sibling(file, "-wal")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if log.metadata()?.len() == 0 {
            return Ok(None);
        }
        let index = match File::open(sibling(file, "-shm")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Index::read(opened?)?,
        };
        Self::read(BufReader::new(log), &database_page(file)?, index.as_ref()).map(Some)
    }

    /// `page_bytes` is the page size of the database, for a log whose header is damaged.
    fn read(mut log: impl Read, page_bytes: &Option<usize>, index: Option<&Index>) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        if read_full(&mut log, &mut header)? < HEADER_BYTES {
            return Ok(Self::default());
        }
        let header = Header::parse(&header);
        let Some(page_bytes) = header.page_bytes.filter(|_| header.is_whole).or(*page_bytes) else {
            return Ok(Self::default());
        };
        let mut walk = Walk::new(&header);
        let mut wal = Self { page_bytes, ..Self::default() };
        let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
        while read_full(&mut log, &mut frame)? == frame.len() {
            walk.add(&frame, &mut wal);
        }
        walk.finish(&mut wal);
        if let Some(index) = index.filter(|index| index.salts == header.salts) {
            wal.indexed = index.frames;
        }
        Ok(wal)
    }

    /// The damage that SQLite would hide, if any. A last commit that was interrupted is none.
    pub(crate) fn damage(&self) -> Option<WalDamage> {
        let committed =
            |frames: &[WalFrame]| frames.iter().rposition(|frame| frame.commit > 0).map_or(0, |last| last + 1);
        let accepted = self.frames.get(..self.accepted).unwrap_or_default();
        let rest = self.frames.get(self.accepted..).unwrap_or_default();
        // A transaction that did not end leaves frames without a commit, also behind the commits of the next process.
        let have_commit = |frames: &[WalFrame]| frames.iter().any(WalFrame::is_commit);
        let is_changed = match rest {
            // A frame that was being written over an earlier one.
            [first, others @ ..] if first.state == FrameState::Damaged && !others.is_empty() => have_commit(others),
            rest => have_commit(rest),
        };
        if is_changed {
            return Some(WalDamage::Changed);
        }
        if self.indexed <= committed(accepted) {
            return None;
        }
        Some(if self.indexed <= self.frames.len() { WalDamage::Changed } else { WalDamage::Short })
    }

    /// The number of frames up to and including the newest commit. No frame before is lost, but some may be damaged.
    pub(crate) fn newest_commit(&self) -> usize {
        let known = self.frames.iter().take_while(|frame| frame.state != FrameState::Other);
        known.enumerate().filter(|(_, frame)| frame.commit > 0).last().map_or(0, |(last, _)| last + 1)
    }

    /// Whether commits after the newest one that can be found are lost.
    pub(crate) fn misses_commits(&self) -> bool {
        let newest = self.newest_commit();
        let rest = self.frames.get(newest..).unwrap_or_default();
        self.indexed > newest || rest.iter().any(WalFrame::is_commit)
    }

    /// The number of frames up to and including the newest commit at which every page is as it was written.
    pub(crate) fn newest_whole_commit(&self) -> usize {
        let mut damaged = BTreeSet::new();
        let mut newest = 0;
        for (index, frame) in self.frames.iter().take(self.newest_commit()).enumerate() {
            match frame.state {
                FrameState::Whole => drop(damaged.remove(&frame.page)),
                _ => damaged.extend([frame.page].into_iter().chain(frame.other_page)),
            }
            if frame.commit > 0 && frame.state == FrameState::Whole && damaged.is_empty() {
                newest = index + 1;
            }
        }
        newest
    }

    /// Where the page of a frame is in the log.
    pub(crate) fn page_offset(&self, index: usize) -> u64 {
        (HEADER_BYTES + index * (FRAME_HEADER_BYTES + self.page_bytes) + FRAME_HEADER_BYTES) as u64
    }

    /// The pages that neither the database file, which has `file_pages`, nor the accepted part of the log contains.
    pub(crate) fn lacks_pages(&self, file_pages: u64) -> bool {
        let accepted = self.frames.get(..self.accepted).unwrap_or_default();
        let Some(last) = accepted.iter().rposition(|frame| frame.commit > 0) else { return false };
        let committed = accepted.get(..=last).unwrap_or_default();
        let size = committed.last().map_or(0, |frame| u64::from(frame.commit));
        let beyond: BTreeSet<u64> = committed
            .iter()
            .map(|frame| u64::from(frame.page))
            .filter(|page| (file_pages + 1..=size).contains(page))
            .collect();
        (beyond.len() as u64) < size.saturating_sub(file_pages)
    }
}

/// Whether the index of a log names commits that are not in the database file, although there is no log.
pub(crate) fn is_log_missing(file: &Path) -> io::Result<bool> {
    let index = match File::open(sibling(file, "-shm")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => Index::read(opened?)?,
    };
    Ok(index.is_some_and(|index| index.frames > index.in_database))
}

/// The page size in the header of a database; `None` if it is damaged.
fn database_page(file: &Path) -> io::Result<Option<usize>> {
    let mut header = [0; 18];
    let mut database = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let length = read_full(&mut database, &mut header)?;
    let bytes = usize::from(u16::from_be_bytes([header[16], header[17]]));
    let bytes = if bytes == 1 { 65_536 } else { bytes };
    Ok((length == header.len() && bytes.is_power_of_two() && PAGE_BYTES.contains(&bytes)).then_some(bytes))
}

/// Reads until the buffer is full or the input ends.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// The big-endian number at a position; 0 beyond the end.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

type Checksum = (u32, u32);

/// Continues a checksum over bytes, whose number is a multiple of 8.
fn checksum(big_endian: bool, start: Checksum, bytes: &[u8]) -> Checksum {
    let word = |four: [u8; 4]| if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
    let (words, _) = bytes.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().fold(start, |(first, second), pair| {
        let first = first.wrapping_add(word(pair[0])).wrapping_add(second);
        (first, second.wrapping_add(word(pair[1])).wrapping_add(first))
    })
}

struct Header {
    /// `None` if the first bytes are damaged.
    big_endian: Option<bool>,
    page_bytes: Option<usize>,
    salts: [u8; 8],
    /// The checksum as it is stored, and the one of the other fields, little-endian and big-endian.
    stored: Checksum,
    computed: (Checksum, Checksum),
    is_whole: bool,
}

impl Header {
    fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let magic = number(bytes, 0);
        let page_bytes = number(bytes, 8) as usize;
        let fields = bytes.get(..24).unwrap_or_default();
        let computed = (checksum(false, (0, 0), fields), checksum(true, (0, 0), fields));
        let stored = (number(bytes, 24), number(bytes, 28));
        let big_endian = (magic & !1 == MAGIC).then_some(magic & 1 == 1);
        let is_sized = page_bytes.is_power_of_two() && PAGE_BYTES.contains(&page_bytes);
        let is_sum = big_endian.is_some_and(|big_endian| (if big_endian { computed.1 } else { computed.0 }) == stored);
        Self {
            big_endian,
            page_bytes: is_sized.then_some(page_bytes),
            salts: bytes.get(16..24).and_then(|salts| salts.try_into().ok()).unwrap_or_default(),
            stored,
            computed,
            is_whole: is_sized && is_sum && number(bytes, 4) == VERSION,
        }
    }
}

/// Follows the checksums from frame to frame.
struct Walk<'h> {
    header: &'h Header,
    big_endian: bool,
    salts: [u8; 8],
    /// The checksum of the last frame as it is stored.
    stored: Checksum,
    /// The last frame, if it is not as its checksum says.
    broken: Option<Broken>,
    /// Whether SQLite has accepted all frames so far.
    is_accepted: bool,
    last: FrameState,
}

impl<'h> Walk<'h> {
    fn new(header: &'h Header) -> Self {
        Self {
            header,
            big_endian: header.big_endian.unwrap_or_default(),
            salts: header.salts,
            stored: header.stored,
            broken: None,
            is_accepted: header.is_whole,
            last: FrameState::Whole,
        }
    }

    fn add(&mut self, frame: &[u8], wal: &mut Wal) {
        if wal.frames.is_empty() && !self.header.is_whole {
            self.start_without_header(frame);
        }
        let sum = |start| {
            let start = checksum(self.big_endian, start, frame.get(..8).unwrap_or_default());
            checksum(self.big_endian, start, frame.get(FRAME_HEADER_BYTES..).unwrap_or_default())
        };
        let stored = (number(frame, 16), number(frame, 20));
        let is_own = frame.get(8..16) == Some(&self.salts) && number(frame, 0) > 0;
        let computed = sum(self.stored);
        let mut is_linked = computed == stored;
        if let (Some(broken), Some(before)) = (self.broken.take(), wal.frames.last_mut()) {
            if is_linked {
                // The stored checksum of the frame before is right, so its page or its page number is not.
                broken.apply(before);
            } else if sum(broken.computed) == stored {
                // Only the stored checksum of the frame before was changed.
                is_linked = true;
                (before.state, before.other_page) = (FrameState::Whole, None);
            }
        }
        let state = match (is_own, is_linked) {
            (true, true) => FrameState::Whole,
            // The salts of a frame are not part of its checksum.
            (false, true) if self.last != FrameState::Other => FrameState::Whole,
            (true, false) => FrameState::Damaged,
            (false, _) => FrameState::Other,
        };
        self.is_accepted &= is_own && is_linked;
        wal.accepted += usize::from(self.is_accepted);
        wal.frames.push(WalFrame {
            page: number(frame, 0),
            commit: number(frame, 4),
            state,
            other_page: None,
            repair: None,
        });
        if let (FrameState::Damaged, Some(broken)) = (state, wal.frames.last_mut()) {
            let changes = single_changes(self.big_endian, self.stored, stored, frame);
            let other_page = changes.iter().filter(|change| change.offset == 0).map(|change| number(&change.bytes, 0));
            broken.other_page = other_page.max().filter(|page| *page != broken.page);
            // Changes of the highest bits have the same effect in several places.
            let changed = if let [change] = changes.as_slice() { Some(*change) } else { None };
            self.broken = Some(Broken { computed, changed });
        }
        self.stored = stored;
        self.last = state;
    }

    fn finish(&mut self, wal: &mut Wal) {
        // Without a frame after it, a change of the last four bytes cannot be told from a change of the checksum.
        if let (Some(broken), Some(last)) = (self.broken.take(), wal.frames.last_mut())
            && broken.changed.is_some_and(|change| change.offset < wal.page_bytes)
        {
            broken.apply(last);
        }
    }

    /// Finds out what a damaged header does not say, with the help of the first frame.
    fn start_without_header(&mut self, frame: &[u8]) {
        let stored = (number(frame, 16), number(frame, 20));
        for big_endian in [false, true] {
            for start in [self.header.stored, if big_endian { self.header.computed.1 } else { self.header.computed.0 }]
            {
                let sum = checksum(big_endian, start, frame.get(..8).unwrap_or_default());
                if checksum(big_endian, sum, frame.get(FRAME_HEADER_BYTES..).unwrap_or_default()) == stored {
                    (self.big_endian, self.stored) = (big_endian, start);
                }
            }
        }
        self.salts = frame.get(8..16).and_then(|salts| salts.try_into().ok()).unwrap_or_default();
    }
}

/// A frame that is not as its checksum says.
struct Broken {
    /// The checksum of what it contains.
    computed: Checksum,
    /// The change that makes it what its stored checksum says, if there is only one.
    changed: Option<Change>,
}

impl Broken {
    fn apply(&self, frame: &mut WalFrame) {
        let Some(Change { offset, bytes }) = self.changed else { return };
        match offset.checked_sub(8) {
            Some(offset) => frame.repair = Some((offset, bytes)),
            None => (frame.page, frame.commit) = (number(&bytes, 0), number(&bytes, 4)),
        }
        (frame.state, frame.other_page) = (FrameState::Whole, None);
    }
}

/// Eight bytes at an offset of what the checksum of a frame covers: its first eight bytes and its page.
#[derive(Clone, Copy)]
struct Change {
    offset: usize,
    bytes: [u8; 8],
}

/// The changes of four bytes at most after which a frame has its stored checksum.
///
/// A checksum can be continued backwards. From the checksum before two numbers and the one after them, both follow; the change
/// is where one of them is as it is in the frame.
fn single_changes(big_endian: bool, start: Checksum, end: Checksum, frame: &[u8]) -> Vec<Change> {
    let read = |four: [u8; 4]| if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
    let write = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let covered = [frame.get(..8), frame.get(FRAME_HEADER_BYTES..)].map(Option::unwrap_or_default).concat();
    let (words, _) = covered.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    let pairs: Vec<(u32, u32)> = pairs.iter().map(|pair| (read(pair[0]), read(pair[1]))).collect();
    // The checksum after each pair, from the end backwards.
    let mut after = Vec::with_capacity(pairs.len());
    let (mut first, mut second) = end;
    for (one, two) in pairs.iter().rev() {
        after.push((first, second));
        second = second.wrapping_sub(*two).wrapping_sub(first);
        first = first.wrapping_sub(*one).wrapping_sub(second);
    }
    let mut found = Vec::new();
    let (mut first, mut second) = start;
    for (index, ((one, two), (first_after, second_after))) in pairs.iter().zip(after.into_iter().rev()).enumerate() {
        let should_be = (
            first_after.wrapping_sub(first).wrapping_sub(second),
            second_after.wrapping_sub(second).wrapping_sub(first_after),
        );
        if (should_be.0 == *one) != (should_be.1 == *two) {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&write(should_be.0));
            bytes[4..].copy_from_slice(&write(should_be.1));
            found.push(Change { offset: index * 8, bytes });
        }
        first = first.wrapping_add(*one).wrapping_add(second);
        second = second.wrapping_add(*two).wrapping_add(first);
    }
    found
}

/// What the index of a log says about it. Processes share it in memory; it is in the file as long as the system runs.
struct Index {
    salts: [u8; 8],
    /// The number of committed frames.
    frames: usize,
    /// How many of them are already in the database file.
    in_database: usize,
}

impl Index {
    /// `None` if the index is damaged, or has not been written completely.
    fn read(mut file: impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; 2 * INDEX_HEADER_BYTES + 4];
        if read_full(&mut file, &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        let (first, rest) = bytes.split_at(INDEX_HEADER_BYTES);
        let (second, backfilled) = rest.split_at(INDEX_HEADER_BYTES);
        let native = |bytes: &[u8], at: usize| u32::from_ne_bytes(number(bytes, at).to_be_bytes());
        let fields = first.get(..INDEX_CHECKED_BYTES).unwrap_or_default();
        let sum = checksum(cfg!(target_endian = "big"), (0, 0), fields);
        let is_valid = first == second
            && native(first, 0) == VERSION
            && first.get(12) == Some(&1)
            && sum == (native(first, 40), native(first, 44));
        Ok(is_valid.then(|| Self {
            salts: first.get(32..40).and_then(|salts| salts.try_into().ok()).unwrap_or_default(),
            frames: native(first, 16) as usize,
            in_database: native(backfilled, 0) as usize,
        }))
    }
}
