//! The headers of a request: those of the protocol and those of the settings.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use reqwest::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use secrecy::{ExposeSecret, SecretString};

use crate::http::client;
use crate::model::error::ModelError;
use crate::providers::http::config::config_error;

const RESERVED_HEADERS: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];

/// A header value marked sensitive.
///
/// # Errors
/// [`ModelError::Config`] when the secret contains characters that are not allowed in a header. The message does not contain it.
pub(crate) fn secret(value: &str, name: impl Into<Message>) -> Result<HeaderValue, ModelError> {
    let name = name.into();
    client::secret(value)
        .ok_or_else(|| config_error(msg!("{name} contains characters that are not allowed in a header; check that the right file or variable was read")))
}

/// Adds the headers of the settings to `headers`. They replace headers of the same name, because a gateway may need another version or
/// authorization than the protocol. All of them are marked sensitive.
///
/// # Errors
/// [`ModelError::Config`] for an invalid name or value, a header that describes the body or connection, and one that would replace
/// the configured key.
pub(crate) fn with_custom(mut headers: HeaderMap, custom: &[(String, SecretString)]) -> Result<HeaderMap, ModelError> {
    let protocol_headers: HeaderMap = headers.clone();
    for (name, value) in custom {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| config_error(msg!("`{name}` in `headers` is not a valid header name")))?;
        if RESERVED_HEADERS.contains(&parsed) {
            return Err(config_error(msg!("`headers` must not set `{name}`: the request sets it itself")));
        }
        if protocol_headers.get(&parsed).is_some_and(HeaderValue::is_sensitive) {
            return Err(config_error(msg!(
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
    fn configured_headers_are_sent_and_never_shown() {
        let protocol_headers =
            HeaderMap::from_iter([(HeaderName::from_static("x-version"), HeaderValue::from_static("1"))]);
        let headers = with_custom(protocol_headers, &custom(&[("X-Team", "geheim\n"), ("x-version", "2")])).unwrap();
        assert_eq!(headers.get("x-team").unwrap(), "geheim");
        assert_eq!(headers.get("x-version").unwrap(), "2");
        assert!(!format!("{headers:?}").contains("geheim"), "{headers:?}");
    }

    #[test]
    fn invalid_headers_are_rejected_without_showing_their_value() {
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
