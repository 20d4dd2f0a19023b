//! The ids of sessions: new ones, and the check of those that a person chooses.

use bcc_lang::message::msg;

use crate::clock::now;
use crate::error::EngineError;

/// How many new ids are tried if they are already in use.
pub(crate) const MAX_ID_ATTEMPTS: u32 = 8;

/// A new id: the script, the day, and a random suffix.
pub(crate) fn new_id(script: &str) -> String {
    let day = now().strftime("%Y%m%d").to_string();
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let tail: String = unique.chars().rev().take(8).collect();
    // An id that starts with `-` could not be told from an option on a command line.
    let script = script.trim_start_matches('-');
    let script = if script.is_empty() { "session" } else { script };
    format!("{script}-{day}-{tail}")
}

/// A new id that cannot be guessed: the script, and 122 random bits.
pub fn secret_id(script: &str) -> String {
    /// Short enough for an id with the random part.
    const MAX_SCRIPT_CHARS: usize = 100;
    let script: String = script.trim_start_matches('-').chars().take(MAX_SCRIPT_CHARS).collect();
    let script = if script.is_empty() { "session" } else { &script };
    format!("{script}-{}", uuid::Uuid::new_v4().simple())
}

/// A text that no other session has, also none with the same id.
pub(crate) fn new_nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Checks an id that somebody chose.
///
/// # Errors
/// `Usage`.
pub fn valid_session_id(id: &str) -> Result<(), EngineError> {
    const MAX_LENGTH: usize = 200;
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = id.chars().count();
    // Dots alone are directories in paths and addresses.
    let is_dots = id.chars().all(|c| c == '.');
    if id.is_empty() || is_dots || id.starts_with('-') || length > MAX_LENGTH || !id.chars().all(allowed) {
        return Err(EngineError::usage(msg!("`{id}` is not a valid session id")).with_help(msg!(
            "an id consists of 1 to {LONGEST} letters, digits, `_`, `.` and `-`, does not start with `-`, and is more than dots",
            LONGEST = MAX_LENGTH
        )));
    }
    Ok(())
}
