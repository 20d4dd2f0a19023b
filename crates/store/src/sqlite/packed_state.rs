//! What commits replaced, compressed. Its texts are JSON whose names are always the same, so that they are compressed with a fixed dictionary
//! ([`DICTIONARY`]): nothing else of the store is needed to read one, and no other row has to stay because of it.
//!
//! `replaced.packed` has a version (one byte), the length of the text and its CRC-32 (four bytes each, little endian), and the compressed
//! bytes as a block of LZ4; `replaced.row` is then null.

use rusqlite::Connection;

use crate::sqlite::compressed::{MAX_PACKED_BYTES, decompressed, invalid};

/// The form of the bytes. Another dictionary is another form, which is read in addition to this one.
const VERSION: u8 = 1;

/// The bytes in front of the compressed ones.
const HEADER_BYTES: usize = 9;

/// The minimum length of a text, in bytes, that is packed.
const MIN_PACKED_BYTES: usize = 100;

/// The names and values that rows usually have. It never changes: stores refer to it.
const DICTIONARY: &str = include_str!("packed_state.dictionary");

/// The text, packed; none if it is not worth it.
pub(crate) fn pack(text: &str) -> Option<Vec<u8>> {
    if !(MIN_PACKED_BYTES..=MAX_PACKED_BYTES).contains(&text.len()) {
        return None;
    }
    let length = u32::try_from(text.len()).ok()?;
    let compressed = lz4_flex::block::compress_with_dict(text.as_bytes(), DICTIONARY.as_bytes());
    let mut packed = Vec::with_capacity(HEADER_BYTES + compressed.len());
    packed.push(VERSION);
    packed.extend(length.to_le_bytes());
    packed.extend(crc32fast::hash(text.as_bytes()).to_le_bytes());
    packed.extend(compressed);
    (packed.len() < text.len()).then_some(packed)
}

/// The text that was packed to these bytes.
pub(crate) fn unpack(packed: &[u8]) -> rusqlite::Result<String> {
    let (Some((&[VERSION], rest)), true) = (packed.split_first_chunk(), packed.len() > HEADER_BYTES) else {
        return Err(invalid("what a commit replaced is packed in an unknown form"));
    };
    let (Some((length, rest)), Some(compressed)) = (rest.split_first_chunk(), packed.get(HEADER_BYTES..)) else {
        return Err(invalid("what a commit replaced is not whole"));
    };
    let checksum = rest.first_chunk().copied().map_or(0, u32::from_le_bytes);
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    decompressed(compressed, length, checksum, DICTIONARY)
}

/// Whether the layout of the store has packed rows. Those that are saved from a damaged store have the layout of that store.
pub(crate) fn has_packed_rows(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT count(*) FROM pragma_table_info('replaced') WHERE name = 'packed'")?
        .query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"status":"running","location":"{\"phase_id\":\"p\",\"topic_id\":\"t\",\"action_id\":\"ask\",\"path\":\"t/ask\"}","head":"{\"waiting\":null,\"pending\":false,\"hidden\":0,\"messages\":120,\"turns\":120,\"model_calls\":120,\"tokens_in\":0,\"tokens_out\":0,\"ms\":480,\"budget\":{}}","answers":60,"last_seq":604}"#;

    #[test]
    fn texts_are_read_again_and_take_less_space() {
        let long = format!("{{\"variable\":{{\"scope\":\"session\",\"value\":\"{}\"}}}}", "她说：「好」。".repeat(40));
        for text in [HEAD, &long] {
            let packed = pack(text).unwrap();
            assert!(packed.len() * 2 < text.len(), "{} of {}", packed.len(), text.len());
            assert_eq!(unpack(&packed).unwrap(), text);
        }
        for text in ["", "{\"cell\":null}", &"x".repeat(MAX_PACKED_BYTES + 1)] {
            assert_eq!(pack(text), None, "{} bytes", text.len());
        }
    }

    #[test]
    fn bytes_that_were_changed_are_an_error() {
        let packed = pack(HEAD).unwrap();
        for length in 0..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length}");
        }
        for at in 0..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 0x55;
            assert!(unpack(&changed).is_err(), "{at}");
        }
        let huge = [&[VERSION][..], &u32::MAX.to_le_bytes(), &[0; 12]].concat();
        assert!(unpack(&huge).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn the_dictionary_is_that_of_all_stores() {
        // Another text makes every packed row unreadable: it needs another version.
        assert_eq!((DICTIONARY.len(), crc32fast::hash(DICTIONARY.as_bytes())), (5_456, 828_682_789));
    }
}
