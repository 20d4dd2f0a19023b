//! Large texts inside stored JSON, such as the outputs of cells and the prompts of model calls: each is stored once, by
//! its content, and the rows of a session that contain it refer to it.

use std::borrow::Cow;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, params};

use crate::content_hash::hash;
use crate::rows::TextRow;

/// The minimum length, in bytes, of a JSON string that is stored on its own. A shorter one takes at most four pages of its
/// row; an output of a cell is often larger, and is written again with every change of the cell.
pub(crate) const MIN_BLOB_BYTES: usize = 16 << 10;

/// The first character of a stored text that is not the text itself. JSON contains no control characters.
const MARK: char = '\u{1}';

/// Follows [`MARK`] at the start of a text with blobs; each stands as its hash between two marks.
const WITH_BLOBS: char = 'b';

/// Follows [`MARK`] at the start of a text that itself starts with a mark.
const AS_IT_IS: char = 't';

pub(crate) struct Blobs<'c> {
    pub(crate) connection: &'c Connection,
}

impl Blobs<'_> {
    /// The text to store in a row of `session` for `text`. Its large strings are stored as blobs.
    pub(crate) fn store<'t>(&self, session: i64, text: &'t str) -> rusqlite::Result<Cow<'t, str>> {
        if text.starts_with(MARK) {
            return Ok(Cow::Owned(format!("{MARK}{AS_IT_IS}{text}")));
        }
        if text.len() < MIN_BLOB_BYTES || text.contains(MARK) {
            return Ok(Cow::Borrowed(text));
        }
        let mut stored = String::new();
        let mut rest = text;
        while let Some((before, large, after)) = next_large_string(rest) {
            let sha256 = self.put(session, large)?;
            stored.push_str(before);
            stored.push(MARK);
            stored.push_str(&sha256);
            stored.push(MARK);
            rest = after;
        }
        if rest.len() == text.len() {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(format!("{MARK}{WITH_BLOBS}{stored}{rest}")))
    }

    fn put(&self, session: i64, text: &str) -> rusqlite::Result<String> {
        let sha256 = hash(text);
        self.put_hashed(session, &sha256, text)?;
        Ok(sha256)
    }

    /// Stores a text of its own for `session`.
    pub(crate) fn put_text(&self, session: i64, row: &TextRow) -> rusqlite::Result<()> {
        self.put_hashed(session, &row.sha256, &row.text)
    }

    /// Gives `session` the texts with these hashes that the session `from` has.
    pub(crate) fn share(&self, session: i64, from: i64, hashes: &[String]) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO session_blob (session, blob) SELECT ?1, key FROM blob JOIN session_blob ON blob = key
             WHERE sha256 = ?2 AND session = ?3 ON CONFLICT DO NOTHING",
        )?;
        for sha256 in hashes {
            statement.execute(params![session, sha256, from])?;
        }
        Ok(())
    }

    fn put_hashed(&self, session: i64, sha256: &str, text: &str) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT INTO blob (sha256, text) VALUES (?, ?) ON CONFLICT DO NOTHING")?
            .execute([sha256, text])?;
        self.connection
            .prepare_cached(
                "INSERT INTO session_blob (session, blob) SELECT ?, key FROM blob WHERE sha256 = ? ON CONFLICT DO NOTHING",
            )?
            .execute(params![session, sha256])?;
        Ok(())
    }

    /// The text with this hash, if it is one of `session`.
    pub(crate) fn text_of(&self, session: i64, sha256: &str) -> rusqlite::Result<Option<String>> {
        self.has(session, sha256)?.then(|| self.get(sha256)).transpose()
    }

    /// Whether `session` has the text with this hash.
    pub(crate) fn has(&self, session: i64, sha256: &str) -> rusqlite::Result<bool> {
        self.connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM blob JOIN session_blob ON blob = key WHERE sha256 = ? AND session = ?)",
            )?
            .query_row(params![sha256, session], |row| row.get(0))
    }

    /// Replaces a stored text with the text that it was stored for.
    pub(crate) fn complete(&self, text: &mut String) -> rusqlite::Result<()> {
        let Some(stored) = text.strip_prefix(MARK) else { return Ok(()) };
        let complete = match (stored.strip_prefix(AS_IT_IS), stored.strip_prefix(WITH_BLOBS)) {
            (Some(as_it_is), _) => as_it_is.to_owned(),
            (None, Some(with_blobs)) => {
                let mut complete = String::new();
                for (number, part) in with_blobs.split(MARK).enumerate() {
                    // Every second part is a hash.
                    if number % 2 == 0 { complete.push_str(part) } else { complete.push_str(&self.get(part)?) }
                }
                complete
            }
            (None, None) => return Err(invalid("a text starts with an unknown mark")),
        };
        *text = complete;
        Ok(())
    }

    /// The text with this hash. It is compared with the hash: the rows of all sessions share it, and another session of a store
    /// that comes from somebody else may have brought it.
    fn get(&self, sha256: &str) -> rusqlite::Result<String> {
        let text: Option<String> = self
            .connection
            .prepare_cached("SELECT text FROM blob WHERE sha256 = ?")?
            .query_row([sha256], |row| row.get(0))
            .optional()?;
        let text = text.ok_or_else(|| invalid("a part of a text is missing"))?;
        match hash(&text) == sha256 {
            true => Ok(text),
            false => Err(invalid("a part of a text has another content than its hash says")),
        }
    }
}

fn invalid(reason: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, reason.into())
}

/// The first JSON string in `json` that is large, with its quotes, and what is before and after it.
fn next_large_string(json: &str) -> Option<(&str, &str, &str)> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(quote) = find(bytes, at, b'"') {
        let end = end_of_string(bytes, quote)?;
        if end - quote >= MIN_BLOB_BYTES {
            return Some((json.get(..quote)?, json.get(quote..end)?, json.get(end..)?));
        }
        at = end;
    }
    None
}

fn find(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == wanted).map(|offset| from + offset)
}

/// The position after the string that starts with the quote at `start`; none if it does not end.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
