//! Texts of the journal, compressed: an event is mostly what an earlier one of its kind was, because the prompt in it is. It is compressed with
//! an earlier event of the same session and kind as the dictionary, which is stored as it is.
//!
//! `journal.packed` has the compressed bytes, `journal.dictionary` the number of the dictionary in the session, and `journal.body` then has the
//! length and the checksum of the text, so that a damaged dictionary never leads to another text. A dictionary is never packed itself: a text
//! is read with one more row, however long the session is.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::rows::JournalRow;
use crate::sqlite::blobs::Blobs;
use crate::sqlite::compressed::{MAX_PACKED_BYTES, decompressed, invalid};
use crate::sqlite::read::number_of;
use crate::sqlite::schema::SEQ_BITS;
use crate::sqlite::write::{Count, count, key};

/// The minimum length of a text, in bytes, that is packed. Less is hardly worth the columns.
pub(crate) const MIN_PACKED_BYTES: usize = 256;

/// How many dictionaries a kind of event has in a session at a time: as many as actions of different types take turns.
const MAX_DICTIONARIES: u64 = 8;

/// A stored event: its body, or what is left of it with a dictionary.
pub(crate) struct StoredEvent {
    /// If it is packed, its body is the length and the checksum.
    pub(crate) row: JournalRow,
    /// The bytes and the key of the dictionary.
    pub(crate) packed: Option<(Vec<u8>, i64)>,
}

/// Reads the columns `key, at, kind, body, packed, dictionary` of the journal.
pub(crate) fn stored_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let seq = number_of(count(row, 0)?);
    let event = JournalRow { seq, at: row.get(1)?, kind: row.get(2)?, body: row.get(3)? };
    let packed = match row.get::<_, Option<Vec<u8>>>(4)? {
        Some(bytes) => {
            let own: i64 = row.get(0)?;
            let dictionary: i64 = row.get(5)?;
            Some((bytes, (own >> SEQ_BITS << SEQ_BITS) | dictionary))
        }
        None => None,
    };
    Ok(StoredEvent { row: event, packed })
}

/// A text, packed.
pub(crate) struct Packed {
    /// The number of the dictionary in the session.
    pub(crate) dictionary: u64,
    /// The length and the checksum.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

/// What is to be done with a text.
pub(crate) enum PackedText {
    /// It is too short or too long.
    Plain,
    /// It is stored as it is, and later ones are compared with it: it differs too much from those that they were compared with so far. In a
    /// long conversation, the prompts move away from each of them.
    Dictionary {
        slot: u64,
    },
    Packed(Packed),
}

/// Whether a text is worth being packed: at two fifths of its length. A prompt of which a tenth changes with each turn takes the least space
/// if there is a new dictionary after about four turns.
const fn is_small(packed: usize, text: usize) -> bool {
    packed * 5 <= text * 2
}

/// How a text of this kind of event is stored.
pub(crate) fn pack(connection: &Connection, session: i64, kind: &str, text: &str) -> rusqlite::Result<PackedText> {
    if !(MIN_PACKED_BYTES..=MAX_PACKED_BYTES).contains(&text.len()) {
        return Ok(PackedText::Plain);
    }
    let first = key(session, 0)?;
    let mut statement = connection.prepare_cached(
        "SELECT p.slot, p.seq, j.body FROM dictionary AS p JOIN journal AS j ON j.key = ?2 + p.seq
         WHERE p.session = ?1 AND p.kind = ?3 AND j.packed IS NULL ORDER BY p.seq DESC",
    )?;
    let mut rows = statement.query(params![session, first, kind])?;
    let (mut used, mut oldest) = (BTreeSet::new(), 0);
    while let Some(row) = rows.next()? {
        oldest = count(row, 0)?;
        used.insert(oldest);
        let dictionary = row.get_ref(2)?.as_str()?;
        let bytes = lz4_flex::block::compress_with_dict(text.as_bytes(), dictionary.as_bytes());
        if is_small(bytes.len(), text.len()) {
            let body = format!("{} {:08x}", text.len(), crc32fast::hash(text.as_bytes()));
            return Ok(PackedText::Packed(Packed { dictionary: count(row, 1)?, body, bytes }));
        }
    }
    let unused = (0..MAX_DICTIONARIES).find(|slot| !used.contains(slot));
    Ok(PackedText::Dictionary { slot: unused.unwrap_or(oldest) })
}

/// Notes that event `seq` is a dictionary. Events that were packed with the one before it in this slot still refer to that.
pub(crate) fn put_dictionary(
    connection: &Connection,
    session: i64,
    (kind, slot): (&str, u64),
    seq: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO dictionary (session, kind, slot, seq) VALUES (?, ?, ?, ?)")?
        .execute(params![session, kind, Count(slot), Count(seq)])?;
    Ok(())
}

/// The events with their whole texts.
pub(crate) fn unpacked(connection: &Connection, stored: Vec<StoredEvent>) -> rusqlite::Result<Vec<JournalRow>> {
    let blobs = Blobs { connection };
    // Events that follow each other mostly have the same dictionary.
    let mut last: Option<(i64, String)> = None;
    let mut events = Vec::with_capacity(stored.len());
    for StoredEvent { mut row, packed } in stored {
        if let Some((bytes, key)) = packed {
            let dictionary = match last.take() {
                Some((of, text)) if of == key => text,
                _ => dictionary_at(connection, key)?,
            };
            row.body = unpack(&row.body, &bytes, &dictionary)?;
            last = Some((key, dictionary));
        } else {
            blobs.complete(&mut row.body)?;
        }
        events.push(row);
    }
    Ok(events)
}

fn dictionary_at(connection: &Connection, key: i64) -> rusqlite::Result<String> {
    connection
        .prepare_cached("SELECT body FROM journal WHERE key = ? AND packed IS NULL")?
        .query_row([key], |row| row.get(0))
        .optional()?
        .ok_or_else(|| invalid("the dictionary of a text is missing"))
}

/// The text that was packed to these bytes; `body` has its length and its checksum.
fn unpack(body: &str, bytes: &[u8], dictionary: &str) -> rusqlite::Result<String> {
    let (length, checksum) = body.split_once(' ').ok_or_else(|| invalid("a packed text has no checksum"))?;
    let (Ok(length), Ok(checksum)) = (length.parse::<usize>(), u32::from_str_radix(checksum, 16)) else {
        return Err(invalid("the length or the checksum of a packed text is not a number"));
    };
    decompressed(bytes, length, checksum, dictionary)
}
