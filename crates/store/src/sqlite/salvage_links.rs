//! Copies links from a damaged database to a new one.

use rusqlite::Transaction;

use crate::sqlite::error::Failure;
use crate::sqlite::salvage::{Source, has_table};

/// Copies each link, and each conversation that began by one, from the newest source that has it. Returns whether everything could be read.
pub(crate) fn copy(sources: &[Source], target: &Transaction<'_>) -> Result<bool, Failure> {
    if !has_table(target, "link") {
        return Ok(true);
    }
    let mut is_complete = true;
    for (number, source) in sources.iter().enumerate() {
        let mut is_whole = true;
        let orders = [("link", "id", "id DESC"), ("talk", "link, secret_sha256", "link DESC, secret_sha256 DESC")];
        for (table, forward, backward) in orders {
            // From both ends of what cannot be read.
            is_whole &= source.copy(target, table, "true", forward, &[])?
                || source.copy(target, table, "true", backward, &[])?;
        }
        if number == 0 {
            is_complete = is_whole;
        }
        if is_whole {
            break;
        }
    }
    Ok(is_complete)
}
