//! The secrets with which a server is called, masked in what the server repeats.

use std::cmp::Reverse;

use bcc_lang::value::mask::MASK;
use reqwest::Url;

/// The minimum length of a secret that is masked. Shorter ones occur in ordinary words.
const MIN_SECRET_BYTES: usize = 4;

/// Texts that are masked. Has no `Debug`, because they are secret.
#[derive(Clone, Default)]
pub struct ServerSecrets {
    /// The longest first, so that a secret is masked before parts of it.
    texts: Vec<String>,
}

impl ServerSecrets {
    /// The secrets, and the words in them: a server may repeat `Bearer x` or only `x`.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut texts: Vec<String> = secrets.into_iter().collect();
        let words: Vec<String> = texts.iter().flat_map(|secret| secret.split_whitespace()).map(str::to_owned).collect();
        texts.extend(words.into_iter().filter(|word| !word.eq_ignore_ascii_case("bearer")));
        texts.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        texts.sort_by(|one, other| (Reverse(one.len()), one).cmp(&(Reverse(other.len()), other)));
        texts.dedup();
        Self { texts }
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub fn mask(&self, text: &str) -> String {
        self.texts.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }

    /// The same for a text that may have been cut inside a secret.
    pub fn mask_cut(&self, text: &str) -> String {
        let mut masked = self.mask(text);
        let starts = self.texts.iter().flat_map(|secret| {
            let ends = secret.char_indices().map(|(end, _)| end).filter(|end| *end >= MIN_SECRET_BYTES);
            ends.filter_map(|end| secret.get(..end))
        });
        if let Some(start) = starts.filter(|start| masked.ends_with(start)).max_by_key(|start| start.len()) {
            masked.truncate(masked.len() - start.len());
            masked.push_str(MASK);
        }
        masked
    }
}

/// The values in the query of an address, as they are sent and decoded.
pub fn query_secrets(address: &Url) -> impl Iterator<Item = String> {
    let sent = address.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let decoded = address.query_pairs().map(|(_, value)| value.into_owned());
    sent.map(|(_, value)| value.to_owned()).chain(decoded)
}

/// The password in an address, as it is written there and decoded.
pub(crate) fn password_secrets(address: &Url) -> impl Iterator<Item = String> {
    let written = address.password().map(str::to_owned);
    let decoded = written.as_deref().and_then(|password| {
        // In a query, `+` is a space, and `&` ends a value.
        let mut query = address.clone();
        query.set_query(Some(&format!("p={}", password.replace('+', "%2B").replace('&', "%26"))));
        query.query_pairs().next().map(|(_, password)| password.into_owned())
    });
    written.into_iter().chain(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_whole_and_cut() {
        let secrets = ServerSecrets::new(["Bearer abcdefgh".to_owned(), "xyz".to_owned()]);
        assert_eq!(secrets.mask("a Bearer abcdefgh abcdefgh abcdef xyz Bearer"), "a *** *** abcdef xyz Bearer");
        for (text, masked) in [("key abcdef", "key ***"), ("Bearer abc", "***"), ("key abc", "key abc")] {
            assert_eq!(secrets.mask_cut(text), masked);
        }
    }

    #[test]
    fn the_password_of_an_address_is_decoded() {
        let address = Url::parse("http://user:a%40b+c&d%25@h").unwrap();
        assert_eq!(password_secrets(&address).collect::<Vec<_>>(), ["a%40b+c&d%25", "a@b+c&d%"]);
        assert_eq!(password_secrets(&Url::parse("http://h").unwrap()).count(), 0);
    }
}
