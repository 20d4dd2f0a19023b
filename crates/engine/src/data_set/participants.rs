//! The pseudonyms of users.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::trust::own_sessions::pseudonym;

/// The number of characters of the code in a pseudonym.
const LENGTH: usize = 12;

/// Gives each user a pseudonym: always the same one for the person who exports, as long as the key in the configuration directory stays.
pub(crate) struct ParticipantNames<'e> {
    environment: &'e Environment,
    /// Takes the place of the key if there can be none: the pseudonyms are then others in each export.
    nonce: String,
}

impl<'e> ParticipantNames<'e> {
    pub(crate) fn new(environment: &'e Environment) -> Self {
        Self { environment, nonce: uuid::Uuid::new_v4().to_string() }
    }

    pub(crate) fn name(&self, user: &str) -> String {
        let code = pseudonym(self.environment, user).unwrap_or_else(|| {
            let digest = Sha256::digest(format!("{}\0{user}", self.nonce).as_bytes());
            digest.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        });
        format!("p-{}", code.get(..LENGTH).unwrap_or_default())
    }
}
