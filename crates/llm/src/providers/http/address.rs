//! Where a model is asked: the address that follows from the configured one.

use bcc_lang::message::msg;
use reqwest::Url;

use crate::model::error::ModelError;
use crate::providers::http::config::refuse;

/// The address that requests go to: `base_url` and `path` after it. One that already ends in all of `path` is taken as it
/// is, and one that ends in its beginning gets the rest; a query stays.
///
/// # Errors
/// [`ModelError::Config`] when `base_url` is no http or https address, or carries a user name or password. The address
/// itself is left out of the messages: it may carry a key where none belongs.
pub(crate) fn endpoint(base_url: &str, path: &[&str], example: &str) -> Result<Url, ModelError> {
    let write = msg!("write a URL such as {example}");
    let url = Url::parse(base_url.trim())
        .map_err(|error| refuse(msg!("`base_url` is not a valid URL ({error}); {write}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(msg!("`base_url` must start with http:// or https://, not {}:", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("`base_url` must not contain a user name or password; use `api_key_env`"));
    }
    let mut endpoint = url;
    endpoint.set_fragment(None);
    let Some(segments) = endpoint.path_segments() else {
        return Err(refuse(msg!("`base_url` is not a valid URL; {write}")));
    };
    let written: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
    // The longest beginning of the path that stands there already.
    let begun = (1..=path.len()).rev().find(|count| path.get(..*count).is_some_and(|head| written.ends_with(head)));
    let rest = path.get(begun.unwrap_or(0)..).unwrap_or_default();
    if !rest.is_empty() {
        let mut segments =
            endpoint.path_segments_mut().map_err(|()| refuse(msg!("`base_url` is not a valid URL; {write}")))?;
        segments.pop_if_empty().extend(rest);
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: [&str; 2] = ["chat", "completions"];

    #[test]
    fn the_endpoint_is_found_from_every_spelling_of_the_base() {
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
    fn an_address_that_cannot_work_is_refused_without_repeating_it() {
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
