//! The headers of a request: those of the protocol, and those that the settings add.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use secrecy::{ExposeSecret, SecretString};

use crate::http::client;
use crate::model::error::ModelError;
use crate::providers::http::config::refuse;

const OWNED: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];

/// The value of a header that holds a secret, marked sensitive.
///
/// # Errors
/// [`ModelError::Config`] when the secret holds what no header can carry. It is left out of the message.
pub(crate) fn secret(value: &str, what: impl Into<Message>) -> Result<HeaderValue, ModelError> {
    let what = what.into();
    client::secret(value)
        .ok_or_else(|| refuse(msg!("{what} contains characters that are not allowed in a header; check that the right file or variable was read")))
}

/// `headers` with those of the settings added, which take the place of others of their name: a gateway may want another
/// version or another kind of authorization than the protocol's. All of them are marked sensitive.
///
/// # Errors
/// [`ModelError::Config`] for a name that is none, a value that no header can carry, a header that says how the request is
/// written, and one that would replace the configured key.
pub(crate) fn with_custom(mut headers: HeaderMap, custom: &[(String, SecretString)]) -> Result<HeaderMap, ModelError> {
    let own: HeaderMap = headers.clone();
    for (name, value) in custom {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| refuse(msg!("`{name}` in `headers` is not a valid header name")))?;
        if OWNED.contains(&parsed) {
            return Err(refuse(msg!("`headers` must not set `{name}`: the request sets it itself")));
        }
        if own.get(&parsed).is_some_and(HeaderValue::is_sensitive) {
            return Err(refuse(msg!(
                "`headers` sets `{name}`, which carries the API key; configure only one of the two"
            )));
        }
        headers.insert(parsed, secret(value.expose_secret().trim(), msg!("the header `{name}`"))?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(pairs: &[(&str, &str)]) -> Vec<(String, SecretString)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), SecretString::from((*value).to_owned()))).collect()
    }

    #[test]
    fn headers_of_the_settings_are_sent_and_never_shown() {
        let own = HeaderMap::from_iter([(HeaderName::from_static("x-version"), HeaderValue::from_static("1"))]);
        let headers = with_custom(own, &custom(&[("X-Team", "geheim\n"), ("x-version", "2")])).unwrap();
        assert_eq!(headers.get("x-team").unwrap(), "geheim");
        assert_eq!(headers.get("x-version").unwrap(), "2");
        assert!(!format!("{headers:?}").contains("geheim"), "{headers:?}");
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused_without_their_value() {
        let key = HeaderMap::from_iter([(HeaderName::from_static("authorization"), secret("Bearer k", "x").unwrap())]);
        let table = [
            (("x y", "geheim"), "`x y`"),
            (("", "geheim"), "``"),
            (("x-team", "ge\nheim"), "`x-team`"),
            (("Content-Type", "geheim"), "`Content-Type`"),
            (("HOST", "geheim"), "`HOST`"),
            (("Authorization", "geheim"), "API key"),
        ];
        for ((name, value), part) in table {
            let error = with_custom(key.clone(), &custom(&[(name, value)])).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("heim"), "{error}");
        }
    }
}
