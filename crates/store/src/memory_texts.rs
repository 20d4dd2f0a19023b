//! Texts that a new session of the in-memory store has from another one.

use std::collections::HashMap;

use crate::error::StoreError;
use crate::memory::STORE;
use crate::rows::NewSessionRow;

/// The texts of other sessions that this one has as well, by hash. `texts_of` gives the texts of a session.
pub(crate) fn shared_texts<'s>(
    session: &NewSessionRow,
    texts_of: impl Fn(&str) -> Option<&'s HashMap<String, String>>,
) -> Result<HashMap<String, String>, StoreError> {
    let Some(shared) = &session.texts else { return Ok(HashMap::new()) };
    let missing = || StoreError::NotFound { store: STORE.to_owned(), id: shared.session.clone() };
    let texts = texts_of(&shared.session).ok_or_else(missing)?;
    let found = shared.hashes.iter().filter_map(|hash| Some((hash.clone(), texts.get(hash)?.clone())));
    Ok(found.collect())
}
