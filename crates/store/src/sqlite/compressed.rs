//! Texts that are compressed with a dictionary, as blocks of LZ4.

use rusqlite::types::Type;

/// The maximum length: the compression refers at most 64 KiB back, so that more would be compared in vain.
pub(crate) const MAX_PACKED_BYTES: usize = 60 << 10;

/// The text that was compressed with this dictionary, if it has this length and this checksum. Whoever made the store may have written any.
pub(crate) fn decompressed(bytes: &[u8], length: usize, checksum: u32, dictionary: &str) -> rusqlite::Result<String> {
    if length > MAX_PACKED_BYTES {
        return Err(invalid("a packed text is longer than such texts are"));
    }
    let text = lz4_flex::block::decompress_with_dict(bytes, length, dictionary.as_bytes())
        .map_err(|_| invalid("a packed text cannot be unpacked"))?;
    if text.len() != length || crc32fast::hash(&text) != checksum {
        return Err(invalid("a packed text has another content than its checksum says"));
    }
    String::from_utf8(text).map_err(|_| invalid("a packed text is not UTF-8"))
}

pub(crate) fn invalid(reason: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, reason.into())
}
