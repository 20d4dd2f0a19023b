//! Derives the address of requests from the configured one.

use bcc_lang::message::msg;
use reqwest::Url;

use crate::model::error::ModelError;
use crate::providers::http::config::config_error;

/// The address of requests: `base_url` with `path` appended. If `base_url` already ends with `path` or with its first segments, only
/// the missing segments are added. A query is kept.
///
/// # Errors
/// [`ModelError::Config`] when `base_url` is not an http or https address, or contains a user name or password. The messages do not
/// contain the address, because it may contain a key.
pub(crate) fn endpoint(base_url: &str, path: &[&str], example: &str) -> Result<Url, ModelError> {
    let write = msg!("write a URL such as {example}");
    let url = Url::parse(base_url.trim())
        .map_err(|error| config_error(msg!("`base_url` is not a valid URL ({error}); {write}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(config_error(msg!("`base_url` must start with http:// or https://, not {}:", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(config_error("`base_url` must not contain a user name or password; use `api_key_env`"));
    }
    let mut endpoint = url;
    endpoint.set_fragment(None);
    let Some(segments) = endpoint.path_segments() else {
        return Err(config_error(msg!("`base_url` is not a valid URL; {write}")));
    };
    let existing: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
    // The number of leading segments of the path that are already present.
    let present = (1..=path.len()).rev().find(|count| path.get(..*count).is_some_and(|head| existing.ends_with(head)));
    let missing = path.get(present.unwrap_or(0)..).unwrap_or_default();
    if !missing.is_empty() {
        let mut segments =
            endpoint.path_segments_mut().map_err(|()| config_error(msg!("`base_url` is not a valid URL; {write}")))?;
        segments.pop_if_empty().extend(missing);
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: [&str; 2] = ["chat", "completions"];

    #[test]
    fn the_endpoint_is_derived_from_every_form_of_the_base_url() {
        let table: [(&str, &[&str], &str); 12] = [
            ("http://localhost:11434/v1", &CHAT, "http://localhost:11434/v1/chat/completions"),
            ("http://localhost:11434/v1/", &CHAT, "http://localhost:11434/v1/chat/completions"),
            (" https://api.example.com ", &CHAT, "https://api.example.com/chat/completions"),
            ("https://h/v1/chat/completions", &CHAT, "https://h/v1/chat/completions"),
            ("https://h/v1/chat/completions/", &CHAT, "https://h/v1/chat/completions/"),
            ("https://h/openai?api-version=1#x", &CHAT, "https://h/openai/chat/completions?api-version=1"),
            ("https://h", &["v1", "messages"], "https://h/v1/messages"),
            ("https://h/v1", &["v1", "messages"], "https://h/v1/messages"),
            ("https://h/v1/", &["v1", "messages"], "https://h/v1/messages"),
            ("https://h/v1/messages", &["v1", "messages"], "https://h/v1/messages"),
            ("https://h/anthropic", &["v1", "messages"], "https://h/anthropic/v1/messages"),
            ("https://h/v1/other", &["v1", "messages"], "https://h/v1/other/v1/messages"),
        ];
        for (base_url, path, expected) in table {
            assert_eq!(endpoint(base_url, path, "x").unwrap().as_str(), expected, "{base_url}");
        }
    }

    #[test]
    fn invalid_addresses_are_rejected_without_showing_them() {
        for base_url in
            ["", "localhost:11434/v1", "ftp://h/secret", "/v1", "http://", "http://u:secret@h/v1", "file:///x"]
        {
            let error = endpoint(base_url, &CHAT, "http://localhost:11434/v1").unwrap_err();
            assert!(matches!(error, ModelError::Config { .. }), "{base_url}");
            let message = error.to_string();
            assert!(message.contains("`base_url`") && !message.contains("secret"), "{message}");
        }
    }
}
