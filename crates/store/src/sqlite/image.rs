//! Builds a database file from the file of a store and a part of its log, whatever state they are in. Pages that cannot be
//! read are empty in it, so that SQLite reports an error for a row in them and returns no wrong one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::sqlite::damage::copy_file;
use crate::sqlite::disk::{new_private_file, sibling};
use crate::sqlite::schema::{APPLICATION_ID, MIGRATIONS};
use crate::sqlite::wal::{FrameState, Wal};

/// The page size of stores, in bytes, if a file does not say it.
const PAGE_BYTES: usize = 4096;

/// The length of the header of a database, in bytes.
const HEADER_BYTES: usize = 100;

/// Writes a database to `image`, which must not exist: the content of `file` with the first `frames` frames of its log.
pub(crate) fn build(file: &Path, wal: Option<&Wal>, frames: usize, image: &Path) -> io::Result<()> {
    if file.exists() {
        copy_file(file, image)?
    } else {
        drop(new_private_file(image)?)
    }
    let mut target = OpenOptions::new().read(true).write(true).open(image)?;
    let mut pages = None;
    if let Some(wal) = wal.filter(|_| frames > 0) {
        let mut log = File::open(sibling(file, "-wal"))?;
        let mut page = vec![0; wal.page_bytes];
        let whole = wal.frames.iter().take(frames).filter(|frame| frame.state == FrameState::Whole);
        let largest = whole.map(|frame| frame.commit.max(frame.page)).max().unwrap_or_default();
        for (index, frame) in wal.frames.iter().enumerate().take(frames) {
            log.seek(SeekFrom::Start(wal.page_offset(index)))?;
            log.read_exact(&mut page)?;
            if frame.state != FrameState::Whole {
                page.fill(0);
            } else if let Some((offset, bytes)) = frame.repair
                && let Some(changed) = page.get_mut(offset..offset + bytes.len())
            {
                changed.copy_from_slice(&bytes);
            }
            for number in [frame.page].into_iter().chain(frame.other_page) {
                // A page number that is damaged must not make a huge file.
                let Some(before) = number.checked_sub(1).filter(|_| number <= largest) else { continue };
                // The first page only changes in its header, so an earlier one serves as well.
                if before == 0 && frame.state != FrameState::Whole {
                    continue;
                }
                target.seek(SeekFrom::Start(u64::from(before) * wal.page_bytes as u64))?;
                target.write_all(&page)?;
            }
            if frame.commit > 0 {
                pages = Some(if frame.state == FrameState::Whole { frame.commit } else { largest });
            }
        }
    }
    repair_header(&mut target, wal.map_or(PAGE_BYTES, |wal| wal.page_bytes), pages)
}

/// Writes the pages with the list of tables, as `template` has them, a new store whose pages of that list are `pages`. Returns
/// whether it did: the tables of the image are where they are in the template if the readable pages of the list are equal.
pub(crate) fn repair_schema(image: &Path, template: &Path, pages: &[u32]) -> io::Result<bool> {
    let mut source = File::open(template)?;
    let mut target = OpenOptions::new().read(true).write(true).open(image)?;
    let mut equal = 0;
    let mut repaired = Vec::new();
    for number in pages {
        let header = if *number == 1 { HEADER_BYTES } else { 0 };
        let at = u64::from(number.saturating_sub(1)) * PAGE_BYTES as u64;
        let (mut wanted, mut found) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        source.seek(SeekFrom::Start(at))?;
        source.read_exact(&mut wanted)?;
        target.seek(SeekFrom::Start(at))?;
        if target.read_exact(&mut found).is_ok() && wanted.get(header..) == found.get(header..) {
            equal += 1;
        } else {
            repaired.push((at, wanted));
        }
    }
    if equal == 0 {
        return Ok(false);
    }
    for (at, page) in repaired {
        target.seek(SeekFrom::Start(at))?;
        target.write_all(&page)?;
    }
    repair_header(&mut target, PAGE_BYTES, None)?;
    Ok(true)
}

/// Writes the fields of the header that are the same in every store, and the size.
fn repair_header(file: &mut File, page_bytes: usize, pages: Option<u32>) -> io::Result<()> {
    let mut header = [0; HEADER_BYTES];
    file.seek(SeekFrom::Start(0))?;
    match file.read_exact(&mut header) {
        // A file that is shorter than its header has no content.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => header.fill(0),
        read => read?,
    }
    let is_database = header.starts_with(b"SQLite format 3\0");
    let stored = usize::from(u16::from_be_bytes([header[16], header[17]]));
    // The value 1 stands for the largest size.
    let is_sized = stored == 1 || (stored.is_power_of_two() && stored >= 512);
    let page_bytes = match (pages, is_sized) {
        (None, true) if stored == 1 => 1 << 16,
        (None, true) => stored,
        _ => page_bytes,
    };
    let length = file.metadata()?.len();
    let in_header = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let in_file = u32::try_from(length.div_ceil(page_bytes as u64)).unwrap_or(u32::MAX);
    // A damaged number of pages must not make a huge file.
    let in_header = if is_database && in_header / 16 <= in_file { in_header } else { in_file };
    let pages = pages.unwrap_or_else(|| in_header.max(in_file)).max(1);
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..18].copy_from_slice(&u16::try_from(page_bytes).unwrap_or(1).to_be_bytes());
    // No log, no reserved bytes, and the fractions that every database has.
    header[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    header[28..32].copy_from_slice(&pages.to_be_bytes());
    // The newest form of the schema, and UTF-8.
    header[44..48].copy_from_slice(&4_u32.to_be_bytes());
    header[56..60].copy_from_slice(&1_u32.to_be_bytes());
    let layout = u32::from_be_bytes([header[60], header[61], header[62], header[63]]);
    let newest = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if layout == 0 || (layout > newest && !is_database) {
        header[60..64].copy_from_slice(&newest.to_be_bytes());
    }
    if !is_database {
        header[68..72].copy_from_slice(&APPLICATION_ID.to_be_bytes());
    }
    // Otherwise SQLite takes the size of the file for the number of pages.
    header.copy_within(24..28, 92);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    file.set_len(u64::from(pages) * page_bytes as u64)
}
